//! The list of everything installed, which each image carries as a file.

use std::io::Read;

use bollard::Docker;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptions, DownloadFromContainerOptionsBuilder, RemoveContainerOptionsBuilder,
};
use futures_util::TryStreamExt;
use proctor_traces::Digest;

use super::{ImageError, engine};
use crate::KIND_LABEL;

/// Where the image keeps it.
const LIST: &str = "/usr/share/proctor/packages.txt";

/// A list is some 40 KiB; a file much larger than that is not ours.
const CAP: usize = 4 << 20;

/// What is installed in the image: names (`deb/…`, `py/…`, `tool/…`) with versions, in the order of the list.
///
/// Reads a file out of a container that is created and never started.
pub async fn packages(docker: &Docker, reference: &str) -> Result<Vec<(String, String)>, ImageError> {
    Ok(read(docker, reference).await?.0)
}

/// The same, and the digest of the list's bytes.
pub(super) async fn read(
    docker: &Docker,
    reference: &str,
) -> Result<(Vec<(String, String)>, Digest), ImageError> {
    let unusable = |why: String| ImageError::Packages { reference: reference.to_owned(), why };
    let config = ContainerCreateBody {
        image: Some(reference.to_owned()),
        cmd: Some(vec!["/bin/true".to_owned()]),
        network_disabled: Some(true),
        labels: Some([(KIND_LABEL.to_owned(), "package-list".to_owned())].into()),
        ..ContainerCreateBody::default()
    };
    let container = docker
        .create_container(None::<CreateContainerOptions>, config)
        .await
        .map_err(engine("reading the image's package list"))?
        .id;
    let downloaded = download(docker, &container).await;
    let force = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    let removed = docker.remove_container(&container, Some(force)).await;
    let archive = match downloaded {
        Ok(archive) => archive,
        Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => {
            return Err(unusable(format!("{LIST} is not in it")));
        }
        Err(error) => return Err(engine("reading the image's package list")(error)),
    };
    removed.map_err(engine("removing the container used for reading the package list"))?;

    let text = list_in(&archive).map_err(unusable)?;
    let rows = parse(&text).map_err(unusable)?;
    Ok((rows, Digest::of(text.as_bytes())))
}

async fn download(docker: &Docker, container: &str) -> Result<Vec<u8>, bollard::errors::Error> {
    let options = DownloadFromContainerOptionsBuilder::default().path(LIST).build();
    docker
        .download_from_container(container, Some(options))
        .try_fold(Vec::new(), |mut all: Vec<u8>, part| async move {
            // Keeps one byte more than allowed, so that the reader can tell "too large" from "complete".
            let room = (CAP + 1).saturating_sub(all.len());
            all.extend_from_slice(&part[..part.len().min(room)]);
            Ok(all)
        })
        .await
}

/// The text of the one regular file in the archive.
fn list_in(archive: &[u8]) -> Result<String, String> {
    if archive.len() > CAP {
        return Err(format!("it is larger than {CAP} bytes"));
    }
    let mut archive = tar::Archive::new(archive);
    let mut entries = archive.entries().map_err(|error| error.to_string())?;
    let mut entry = entries.next().ok_or("the archive is empty")?.map_err(|error| error.to_string())?;
    if entry.header().entry_type() != tar::EntryType::Regular {
        return Err("it is not a regular file".to_owned());
    }
    let mut text = String::new();
    entry.read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let rows: Option<Vec<_>> = text
        .lines()
        .map(|row| {
            let (name, version) = row.split_once('\t')?;
            (!name.is_empty() && !version.is_empty()).then(|| (name.to_owned(), version.to_owned()))
        })
        .collect();
    match rows {
        Some(rows) if !rows.is_empty() => Ok(rows),
        Some(_) => Err("it is empty".to_owned()),
        None => Err("a row is not `name<TAB>version`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(entry_type: tar::EntryType, content: &[u8]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(entry_type);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, "packages.txt", content).unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn rows_are_names_and_versions() {
        let text = list_in(&archive(tar::EntryType::Regular, b"deb/bash\t5.2\npy/numpy\t2.4\n")).unwrap();
        let expected = [("deb/bash", "5.2"), ("py/numpy", "2.4")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(parse(&text).unwrap(), expected);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        assert!(parse("").is_err());
        assert!(parse("bash 5.2\n").is_err());
        assert!(parse("bash\t\n").is_err());
        assert!(list_in(b"").is_err());
        assert!(list_in(&vec![0; CAP + 1]).is_err());
        assert!(list_in(&archive(tar::EntryType::Symlink, b"")).is_err());
        assert!(list_in(&archive(tar::EntryType::Regular, &[0xff, 0xfe])).is_err());
    }
}
