//! The patch form of Codex: `*** Begin Patch`, with files that are added, changed, moved or deleted.

use super::scene::{Made, Scene};

/// Does to the files of the session what a patch does.
pub(crate) fn apply(scene: &mut Scene, patch: &str) {
    let mut current: Option<Part> = None;
    for line in patch.lines() {
        let heads = [("*** Add File: ", true), ("*** Update File: ", false)];
        let head = heads.into_iter().find_map(|(mark, adds)| Some((line.strip_prefix(mark)?.trim(), adds)));
        if let Some((path, adds)) = head {
            finish(scene, current.take());
            current = Some(Part { path: path.to_owned(), adds, content: String::new(), moved: None });
        } else if line.starts_with("*** Delete File") || line.starts_with("*** End Patch") {
            finish(scene, current.take());
        } else if let (Some(part), Some(to)) = (&mut current, line.strip_prefix("*** Move to: ")) {
            part.moved = Some(to.trim().to_owned());
        } else if let (Some(part), Some(added)) = (&mut current, line.strip_prefix('+')) {
            part.content.push_str(added);
            part.content.push('\n');
        }
    }
    finish(scene, current);
}

struct Part {
    path: String,
    adds: bool,
    content: String,
    moved: Option<String>,
}

fn finish(scene: &mut Scene, part: Option<Part>) {
    let Some(part) = part else { return };
    let path = part.moved.as_deref().unwrap_or(&part.path);
    if part.adds {
        scene.write(path, &Made { content: Some(&part.content), ..Made::default() });
        return;
    }
    let from = part.moved.as_ref().and_then(|_| scene.text(&part.path));
    change(scene, path, from, None, Some(&part.content));
}

/// A part of a file is changed: `old` gives way to `new`, where both are known.
pub(crate) fn change(
    scene: &mut Scene,
    path: &str,
    from: Option<super::ledger::Text>,
    old: Option<&str>,
    new: Option<&str>,
) {
    let resolved = scene.resolve(path);
    let content = scene.ledger.content(&resolved);
    let changed = match (content.as_deref(), old, new) {
        (Some(content), Some(old), Some(new)) if !old.is_empty() => Some(content.replacen(old, new, 1)),
        _ => None,
    };
    let known = scene.known(path).and_then(|it| it.text);
    let aims_at_answer = known.is_none()
        && scene.ledger.meant(&resolved).and_then(|it| it.text).is_some_and(super::ledger::Text::is_answer);
    if aims_at_answer {
        scene.note(super::facts::Fact::ChangedDraft, path);
        return;
    }
    let kind = scene.write(path, &Made { from, amends: true, ..Made::default() });
    if scene.in_vain {
        return;
    }
    let kept = changed.map(Into::into).or(content);
    if let Some(mut now) = scene.known(path) {
        if kind == super::ledger::Text::Note {
            if let Some(new) = new {
                scene.say(new);
            }
        }
        now.content = kept;
        scene.ledger.put(&resolved, now);
    }
}
