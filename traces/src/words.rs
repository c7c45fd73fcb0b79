//! Shell words, as far as they are needed to take a command line apart that a program put together.

/// The script inside a printed command line such as `/bin/bash -lc 'ls -l'`; the line itself if it is none of a shell.
pub(crate) fn script_of_line(line: &str) -> String {
    match split(line) {
        Some(words) => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            script_in(&words).map_or_else(|| line.to_owned(), str::to_owned)
        }
        None => line.to_owned(),
    }
}

/// The script inside the words of a command; the words, quoted where needed, if it is none of a shell.
pub(crate) fn script_of_words(words: &[&str]) -> String {
    script_in(words).map_or_else(|| join(words), str::to_owned)
}

fn script_in<'a>(words: &[&'a str]) -> Option<&'a str> {
    let [shell, flag, script] = words else { return None };
    let name = shell.rsplit('/').next()?;
    let is_shell = matches!(name, "bash" | "sh" | "zsh" | "dash" | "ash" | "ksh" | "fish");
    (is_shell && matches!(*flag, "-lc" | "-c" | "-lic" | "-ic")).then_some(*script)
}

fn join(words: &[&str]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            (*word).to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Words by the quoting rules of POSIX (Shell Command Language, 2.2); none if a quotation does not end.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            '\n' => {}
                            c @ ('$' | '`' | '"' | '\\') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next().filter(|c| *c != '\n')),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_command_lines_give_back_their_script() {
        let line = r#"/usr/bin/bash -lc "printf '<"'!doctype html>'"' > a.html && ls""#;
        assert_eq!(script_of_line(line), "printf '<!doctype html>' > a.html && ls");
        assert_eq!(script_of_line("/bin/zsh -lc pwd"), "pwd");
        assert_eq!(script_of_line("/bin/bash -lc 'it'\\''s'"), "it's");
        assert_eq!(script_of_line("git status"), "git status");
        assert_eq!(script_of_line("/bin/bash -lc 'torn"), "/bin/bash -lc 'torn");
    }

    #[test]
    fn words_that_are_no_shell_are_joined() {
        assert_eq!(script_of_words(&["bash", "-lc", "a; b"]), "a; b");
        assert_eq!(script_of_words(&["ls", "my file", ""]), "ls 'my file' ''");
    }
}
