//! Reading the captures that lie beside the repository, where they are; and odd files.

use super::*;

fn show(records: &Records) -> Vec<String> {
    records
        .calls
        .iter()
        .map(|call| {
            let t = |m: Option<Moment>| m.map_or("-".into(), |m| format!("{}", m.ms % 100_000));
            format!(
                "{} {} {} {:?} {:?} {}..{} ret {} iss {} parent {:?} polls {:?} img {} {}B {:?}",
                call.id.0,
                call.name,
                call.input,
                call.status,
                call.exit_code,
                t(call.start),
                t(call.end),
                t(call.returned),
                t(call.issued),
                call.parent,
                call.polls,
                call.images.len(),
                call.output_bytes,
                call.output.chars().take(30).collect::<String>()
            )
        })
        .collect()
}

#[test]
fn dump() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures/agent-sessions");
    let mut files = Vec::new();
    fn walk(dir: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
        for e in std::fs::read_dir(dir).unwrap() {
            let p = e.unwrap().path();
            if p.is_dir() {
                walk(&p, files)
            } else if p.extension().is_some_and(|x| x == "jsonl") {
                files.push(p)
            }
        }
    }
    walk(&root, &mut files);
    files.sort();
    for f in files {
        let bytes = std::fs::read(&f).unwrap();
        let times = std::fs::read(f.with_extension("times")).ok().map(|b| Arrivals::parse(&b));
        println!("== {}", f.strip_prefix(&root).unwrap().display());
        match read(&bytes, None, times.as_ref()) {
            Ok(r) => {
                println!(
                    "{} {:?} usage {:?} turns {} counts {:?} said {}",
                    r.format,
                    r.clock,
                    r.usage,
                    r.turns,
                    r.counts,
                    r.said.len()
                );
                for l in show(&r) {
                    println!("   {l}")
                }
            }
            Err(e) => println!("ERR {e}"),
        }
    }
}
