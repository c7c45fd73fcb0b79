//! Installing with an `npm` that is a shell script: what is kept, what is refused, and that nothing half-made stays.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use pretty_assertions::assert_eq;
use proctor_harnesses::{
    HarnessName, InstallError, InstallSpec, InstallStep, Installed, KeptFile, KeptTree, NpmCommand,
    NpmPackage, PackagePin, install, installed, verify,
};
use proctor_traces::Digest;

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    /// An `npm` that does `script` in the folder given with `--prefix`, and counts how often it is called.
    fn npm(&self, script: &str) -> NpmCommand {
        let path = self.dir.path().join("npm");
        let calls = self.dir.path().join("calls");
        let script = format!(
            "#!/bin/sh\necho \"$*\" >> {}\nwhile [ \"$1\" != --prefix ]; do shift; done\ncd \"$2\"\n{script}\n",
            calls.display()
        );
        let source = path.with_extension("txt");
        fs::write(&source, script).unwrap();
        // Another test may fork at this moment: had this process the program open for writing, its execution would
        // fail as "text file busy".
        let made = Command::new("install").args(["-m755"]).args([&source, &path]).status().unwrap();
        assert!(made.success());
        NpmCommand { program: path.into(), env: Vec::new() }
    }

    fn good_npm(&self) -> NpmCommand {
        self.npm(
            "mkdir -p node_modules/cli/vendor\n\
             printf program > node_modules/cli/vendor/main\n\
             printf unneeded > node_modules/cli/README.md\n\
             printf '{\"packages\":{\"node_modules/cli\":{\"integrity\":\"sha512-x\"}}}' \
             > node_modules/.package-lock.json",
        )
    }

    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.dir.path().join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    fn install(&self, spec: &InstallSpec, npm: &NpmCommand) -> Result<Installed, InstallError> {
        install(spec, &self.cache(), npm, &mut |_| {})
    }

    /// Every file and folder below `cache/harnesses`, relative to it.
    fn tree(&self) -> Vec<String> {
        let root = self.cache().join("harnesses");
        let mut found = Vec::new();
        walk(&root, &mut |path| {
            found.push(path.strip_prefix(&root).unwrap().to_string_lossy().into_owned());
        });
        found.sort();
        found
    }
}

fn walk(dir: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        visit(&path);
        if path.is_dir() {
            walk(&path, visit);
        }
    }
}

fn spec(pin: Option<Digest>) -> InstallSpec {
    let file = |from: &str, to: &str, required| KeptFile {
        from: from.to_owned(),
        to: to.to_owned(),
        required,
        pin: pin.filter(|_| required),
    };
    InstallSpec {
        name: HarnessName::Codex,
        version: "1.2.3".parse().unwrap(),
        packages: vec![NpmPackage { spec: "cli@npm:some@1.2.3".to_owned(), folder: "cli".to_owned() }],
        tree: None,
        before: None,
        files: vec![file("cli/vendor/main", "bin/main", true), file("cli/vendor/extra", "bin/extra", false)],
    }
}

const WHOLE: [&str; 5] =
    ["codex", "codex/1.2.3", "codex/1.2.3/bin", "codex/1.2.3/bin/main", "codex/1.2.3/install.json"];

#[test]
fn only_what_is_needed_is_kept_and_written_down() {
    let bench = Bench::new();
    let npm = bench.good_npm();
    let mut steps = Vec::new();
    let done =
        install(&spec(Some(Digest::of(b"program"))), &bench.cache(), &npm, &mut |step| steps.push(step))
            .unwrap();

    assert_eq!(bench.tree(), WHOLE);
    let call = &bench.calls()[0];
    assert!(call.starts_with("install --ignore-scripts --no-audit --no-fund"), "{call}");
    assert!(call.ends_with("cli@npm:some@1.2.3"), "{call}");
    assert_eq!(steps.len(), 3);
    assert_eq!(steps[2], InstallStep::Done { already: false });

    assert_eq!(done.manifest.files.len(), 1);
    assert_eq!(done.manifest.files[0].digest, Digest::of(b"program"));
    assert_eq!(done.manifest.packages[0].integrity.as_deref(), Some("sha512-x"));
    assert!(done.manifest.pinned);
    assert_eq!(fs::metadata(done.dir.join("bin/main")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::metadata(&done.dir).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(installed(&bench.cache()), std::slice::from_ref(&done));

    verify(&done).unwrap();
    fs::write(done.dir.join("bin/main"), "prOgram").unwrap();
    assert!(matches!(verify(&done), Err(InstallError::Changed { .. })));
}

#[test]
fn what_is_installed_is_not_fetched_again_unless_it_is_broken() {
    let bench = Bench::new();
    let npm = bench.good_npm();
    let first = bench.install(&spec(None), &npm).unwrap();
    let mut steps = Vec::new();
    install(&spec(None), &bench.cache(), &npm, &mut |step| steps.push(step)).unwrap();
    assert_eq!(steps, [InstallStep::Done { already: true }]);
    assert_eq!(bench.calls().len(), 1);

    fs::write(first.dir.join("bin/main"), "cut").unwrap();
    assert_eq!(installed(&bench.cache()), []);
    bench.install(&spec(None), &npm).unwrap();
    assert_eq!(bench.calls().len(), 2);
    assert_eq!(bench.tree(), WHOLE);
    assert_eq!(fs::read(first.dir.join("bin/main")).unwrap(), b"program");
}

#[test]
fn another_program_than_the_pinned_one_is_refused() {
    let bench = Bench::new();
    let error = bench.install(&spec(Some(Digest::of(b"another"))), &bench.good_npm()).unwrap_err();
    assert!(matches!(error, InstallError::Changed { .. }), "{error}");
    assert!(error.hint().unwrap().contains("do not use it"));
    assert_eq!(bench.tree(), [""; 0]);
}

#[test]
fn packages_without_the_program_or_with_a_link_for_it_are_refused() {
    for script in [
        "mkdir -p node_modules/cli",
        "mkdir -p node_modules/cli/vendor; ln -s /bin/sh node_modules/cli/vendor/main",
    ] {
        let bench = Bench::new();
        let error = bench.install(&spec(None), &bench.npm(script)).unwrap_err();
        assert!(matches!(error, InstallError::Layout { .. }), "{error}");
        assert_eq!(bench.tree(), [""; 0]);
    }
}

#[test]
fn a_missing_npm_and_a_failing_one_say_what_to_do() {
    let bench = Bench::new();
    let none = NpmCommand { program: bench.dir.path().join("no-such-npm").into(), env: Vec::new() };
    let error = bench.install(&spec(None), &none).unwrap_err();
    assert!(matches!(error, InstallError::NoNpm { .. }));
    assert!(error.hint().unwrap().contains("apt-get install npm"));

    let error = bench.install(&spec(None), &bench.npm("echo 'npm error code E404' >&2; exit 1")).unwrap_err();
    assert_eq!(error.to_string(), "npm could not install cli@npm:some@1.2.3: npm error code E404");
    assert!(error.hint().unwrap().contains("published version"));
    assert_eq!(bench.tree(), [""; 0]);
}

#[test]
fn any_number_may_install_at_once() {
    let bench = Bench::new();
    let npm = bench.good_npm();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| bench.install(&spec(None), &npm))).collect();
        for one in all {
            let done = one.join().unwrap().unwrap();
            assert_eq!(done.manifest.files[0].digest, Digest::of(b"program"));
        }
    });
    assert_eq!(bench.tree(), WHOLE);
}

/// An `npm` that lays down a package with one inside it, a link, and files that nobody reads.
const PACKAGES: &str = "mkdir -p node_modules/.bin node_modules/cli/dist node_modules/cli/node_modules/inner node_modules/other node_modules/node/bin\n\
     printf program > node_modules/cli/dist/main.js\n\
     printf types > node_modules/cli/dist/main.d.ts\n\
     printf inner > node_modules/cli/node_modules/inner/index.js\n\
     printf other > node_modules/other/index.js\n\
     printf node > node_modules/node/bin/node\n\
     ln -s ../cli/dist/main.js node_modules/.bin/cli\n\
     ln -s /etc/passwd node_modules/cli/passwd\n\
     chmod 700 node_modules/cli node_modules/node/bin/node\n\
     printf '{}' > node_modules/.package-lock.json";

fn tree_spec(digest: Digest) -> InstallSpec {
    InstallSpec {
        files: vec![KeptFile {
            from: "node/bin/node".to_owned(),
            to: "bin/node".to_owned(),
            required: true,
            pin: None,
        }],
        tree: Some(KeptTree {
            except: vec!["node".to_owned()],
            pins: vec![PackagePin { folder: "cli".to_owned(), digest }],
        }),
        before: Some("2026-11-30".to_owned()),
        ..spec(None)
    }
}

#[test]
fn whole_packages_are_kept_without_links_and_compared_with_their_pins() {
    let bench = Bench::new();
    let npm = bench.npm(PACKAGES);
    let own = Digest::of(b"program").to_string();
    let pin = Digest::of_parts([("dist/main.js", own.as_bytes())]);

    let error = bench.install(&tree_spec(Digest::of(b"another")), &npm).unwrap_err();
    assert!(
        matches!(&error, InstallError::Changed { path, found, .. } if path == Path::new("cli") && *found == pin),
        "{error}"
    );
    assert_eq!(bench.tree(), Vec::<String>::new(), "nothing of it stays");

    let done = bench.install(&tree_spec(pin), &npm).unwrap();
    let files: Vec<&str> = done.manifest.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        files,
        [
            "bin/node",
            "node_modules/cli/dist/main.js",
            "node_modules/cli/node_modules/inner/index.js",
            "node_modules/other/index.js",
        ]
    );
    assert!(!bench.tree().iter().any(|path| path.contains("passwd") || path.contains(".bin")));
    let mode = |path: &str| fs::metadata(done.dir.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("bin/node"), mode("node_modules/cli"), mode(files[1])], [0o755, 0o755, 0o644]);
    assert!(bench.calls().iter().all(|call| call.contains("--before=2026-11-30")), "{:?}", bench.calls());
    verify(&done).unwrap();
}
