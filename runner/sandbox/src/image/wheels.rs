//! Python packages are downloaded here, on the host, and go into the build as files: the container that builds would
//! need the host's proxy settings and CA certificates to reach a package index itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proctor_traces::Digest;

use super::context::DiskFile;
use super::inputs::{LOCK, parse_lock};
use super::tool::Tool;
use super::{BuildEvent, ImageError, Wheel};

const PIP: Tool = Tool {
    program: "python3",
    when_missing: "apt-get install python3 python3-pip",
    when_failing: "if pip is missing: apt-get install python3-pip; otherwise check that it reaches a package index \
                   (`python3 -m pip download numpy`)",
};

/// What pip may choose from: `CPython` 3.11 as in Debian 12, x86-64, glibc up to Debian 12's.
const TARGET: &[&str] = &[
    "--implementation=cp",
    "--python-version=3.11",
    "--abi=cp311",
    "--abi=abi3",
    "--abi=none",
    "--only-binary=:all:",
    "--platform=manylinux_2_28_x86_64",
    "--platform=manylinux_2_27_x86_64",
    "--platform=manylinux_2_24_x86_64",
    "--platform=manylinux_2_17_x86_64",
    "--platform=manylinux2014_x86_64",
    "--platform=manylinux_2_12_x86_64",
    "--platform=manylinux_2_5_x86_64",
    "--platform=manylinux1_x86_64",
];

/// The locked wheels as files of the build context; downloads those that `cache` does not hold. Only files with the
/// locked digest are used, so pip and its index need not be trusted.
pub(super) async fn ensure(
    cache: &Path,
    progress: &mut (impl FnMut(BuildEvent) + Send),
) -> Result<Vec<DiskFile>, ImageError> {
    let wanted = parse_lock(LOCK)?;
    let folder = cache.join("wheels");
    create(&folder)?;
    let (mut found, missing) = select(&wanted, scan(folder.clone()).await?);
    if !missing.is_empty() {
        progress(BuildEvent::WheelsDownloading { missing: missing.len(), total: wanted.len() });
        download(cache, &folder, &missing, progress).await?;
        let (all, still) = select(&wanted, scan(folder.clone()).await?);
        if !still.is_empty() {
            let missing = still.iter().map(|wheel| format!("{}=={}", wheel.name, wheel.version)).collect();
            return Err(ImageError::Wheels { missing });
        }
        found = all;
    }
    Ok(found)
}

/// Downloads into a folder beside and moves what is complete, so that an interrupted download leaves no half wheel and
/// two downloads do not disturb each other.
async fn download(
    cache: &Path,
    folder: &Path,
    missing: &[&Wheel],
    progress: &mut (impl FnMut(BuildEvent) + Send),
) -> Result<(), ImageError> {
    let failed = |source| ImageError::Io { doing: format!("download into {}", cache.display()), source };
    let partial = tempfile::Builder::new().prefix("wheels-").tempdir_in(cache).map_err(failed)?;
    let requirements = partial.path().join("requirements.txt");
    let rows =
        missing.iter().map(|wheel| format!("{}=={} --hash={}\n", wheel.name, wheel.version, wheel.digest));
    std::fs::write(&requirements, rows.collect::<String>()).map_err(failed)?;

    let mut args =
        ["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"].map(Into::into).to_vec();
    args.extend(TARGET.iter().map(|arg| PathBuf::from(*arg)));
    args.extend(["--dest".into(), partial.path().to_owned(), "--requirement".into(), requirements.clone()]);
    PIP.run(args, &mut |line| progress(BuildEvent::Output(line))).await?;

    for entry in std::fs::read_dir(partial.path()).map_err(failed)? {
        let source = entry.map_err(failed)?.path();
        if let Some(name) = wheel_name(&source) {
            std::fs::rename(&source, folder.join(name)).map_err(failed)?;
        }
    }
    Ok(())
}

/// Every wheel in `folder` with its digest.
async fn scan(folder: PathBuf) -> Result<BTreeMap<Digest, DiskFile>, ImageError> {
    let doing = format!("read {}", folder.display());
    let scanned = tokio::task::spawn_blocking(move || {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(&folder)? {
            let source = entry?.path();
            let Some(name) = wheel_name(&source) else { continue };
            let (digest, _) = Digest::of_reader(std::fs::File::open(&source)?)?;
            found.insert(digest, DiskFile { name: format!("wheels/{name}"), source });
        }
        Ok(found)
    });
    let flattened = scanned.await.map_err(std::io::Error::other).and_then(|scanned| scanned);
    flattened.map_err(|source| ImageError::Io { doing, source })
}

fn wheel_name(path: &Path) -> Option<&str> {
    path.extension().filter(|extension| *extension == "whl")?;
    path.file_name()?.to_str()
}

/// Splits what is wanted into files that are there, ordered by name, and wheels that are not.
fn select(wanted: &[Wheel], mut found: BTreeMap<Digest, DiskFile>) -> (Vec<DiskFile>, Vec<&Wheel>) {
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    for wheel in wanted {
        match found.remove(&wheel.digest) {
            Some(file) => files.push(file),
            None => missing.push(wheel),
        }
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    (files, missing)
}

fn create(folder: &Path) -> Result<(), ImageError> {
    std::fs::create_dir_all(folder)
        .map_err(|source| ImageError::Io { doing: format!("create {}", folder.display()), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wheel(name: &str, content: &[u8]) -> Wheel {
        Wheel { name: name.to_owned(), version: "1".to_owned(), digest: Digest::of(content) }
    }

    #[tokio::test]
    async fn only_files_with_the_locked_content_count() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("a-1-any.whl", "a"), ("b-1-any.whl", "tampered"), ("c.tar.gz", "c")] {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let wanted = [wheel("c", b"c"), wheel("b", b"b"), wheel("a", b"a")];
        let (files, missing) = select(&wanted, scan(folder.path().to_owned()).await.unwrap());
        assert_eq!(files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["wheels/a-1-any.whl"]);
        assert_eq!(missing, [&wanted[0], &wanted[1]]);
    }
}
