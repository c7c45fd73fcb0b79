//! Bytes and files of workspace and HOME, counted every second: a bind mount cannot be capped (DESIGN §3.4).

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use proctor_traces::Limit;

/// How often the tree is counted.
const PERIOD: Duration = Duration::from_secs(1);

/// How much an agent may leave on the host's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLimits {
    /// Bytes, as the file system counts them.
    pub bytes: u64,
    /// Files and folders.
    pub inodes: u64,
}

impl Default for DiskLimits {
    fn default() -> Self {
        Self { bytes: 4 << 30, inodes: 200_000 }
    }
}

/// Resolves when `folders` together hold more than `limits`; never otherwise.
pub(crate) async fn watch_disk(folders: Vec<PathBuf>, limits: DiskLimits) -> Limit {
    loop {
        tokio::time::sleep(PERIOD).await;
        let folders = folders.clone();
        // A walk over many files must not hold up the timers of other trials.
        let passed = tokio::task::spawn_blocking(move || passed(&folders, limits)).await;
        if let Ok(Some(limit)) = passed {
            return limit;
        }
    }
}

/// The first limit that is passed. Stops counting there, so that a million files cost no more than the limit.
fn passed(folders: &[PathBuf], limits: DiskLimits) -> Option<Limit> {
    let (mut bytes, mut inodes) = (0u64, 0u64);
    for folder in folders {
        for entry in walkdir::WalkDir::new(folder).follow_links(false) {
            let entry = match entry {
                Ok(entry) => entry,
                // Folders so deep that no path reaches them would be a place to hide anything in.
                Err(error) if too_deep(&error) => return Some(Limit::DiskInodes),
                // It went away meanwhile.
                Err(_) => continue,
            };
            inodes += 1;
            // Blocks, not lengths: a sparse file takes no room.
            bytes += entry.metadata().map_or(0, |it| it.blocks() * 512);
            if inodes > limits.inodes {
                return Some(Limit::DiskInodes);
            }
            if bytes > limits.bytes {
                return Some(Limit::DiskBytes);
            }
        }
    }
    None
}

fn too_deep(error: &walkdir::Error) -> bool {
    error.io_error().is_some_and(|error| error.kind() == ErrorKind::InvalidFilename)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_deeper_than_any_path_pass_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let name = "d".repeat(250);
        for depth in 0..20 {
            // Built from the inside out, since no path reaches the innermost folder.
            let around = dir.path().join("around");
            std::fs::create_dir(&around).unwrap();
            std::fs::rename(&tree, around.join(&name)).unwrap();
            std::fs::rename(&around, &tree).unwrap();
            let expected = (depth >= 16).then_some(Limit::DiskInodes);
            if !(14..18).contains(&depth) {
                let folders = [dir.path().to_owned()];
                assert_eq!(passed(&folders, DiskLimits::default()), expected, "{depth}");
            }
        }
    }

    #[test]
    fn counts_blocks_and_names_the_limit_that_is_passed() {
        let dir = tempfile::tempdir().unwrap();
        let folders = [dir.path().to_owned()];
        let limits = DiskLimits { bytes: 100_000, inodes: 4 };
        std::fs::File::create(dir.path().join("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(passed(&folders, limits), None, "a sparse file takes no room");
        std::fs::write(dir.path().join("full"), vec![1; 200_000]).unwrap();
        assert_eq!(passed(&folders, limits), Some(Limit::DiskBytes));
        for name in ["a", "b"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(passed(&folders, DiskLimits { bytes: u64::MAX, ..limits }), Some(Limit::DiskInodes));
    }
}
