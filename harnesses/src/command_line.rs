//! A command line given as one text, split into words as a POSIX shell would: quotes and backslashes, nothing else.
//! Variables, globs and operators are not the splitter's: who wants them writes `bash -c '…'`.

/// A text that is no command line.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum CommandLineError {
    /// A quote is opened and never closed.
    #[error("the quote {quote} at character {at} is never closed")]
    OpenQuote {
        /// `'` or `"`.
        quote: char,
        /// Where it is, counted from 1.
        at: usize,
    },
    /// The last character is a backslash, which quotes nothing.
    #[error("the backslash at the end quotes nothing")]
    TrailingBackslash,
    /// There is no word in it.
    #[error("the command line is empty")]
    Empty,
    /// A NUL cannot be part of an argument.
    #[error("the command line holds a NUL character")]
    Nul,
}

/// Splits `line` into a program and its arguments.
pub fn split_command_line(line: &str) -> Result<Vec<String>, CommandLineError> {
    if line.contains('\0') {
        return Err(CommandLineError::Nul);
    }
    let mut words = Vec::new();
    // None between words; an empty word is one that was only quotes.
    let mut word: Option<String> = None;
    let mut characters = line.chars().enumerate();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                let closed = if character == '\'' {
                    read_single(&mut characters, word)
                } else {
                    read_double(&mut characters, word)
                };
                if !closed {
                    return Err(CommandLineError::OpenQuote { quote: character, at: at + 1 });
                }
            }
            '\\' => match characters.next() {
                // A backslash at the end of a line joins it with the next.
                Some((_, '\n')) => {}
                Some((_, quoted)) => word.get_or_insert_default().push(quoted),
                None => return Err(CommandLineError::TrailingBackslash),
            },
            space if space.is_ascii_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    if words.is_empty() { Err(CommandLineError::Empty) } else { Ok(words) }
}

/// Reads to the closing `'`, and says whether there is one.
fn read_single(characters: &mut impl Iterator<Item = (usize, char)>, word: &mut String) -> bool {
    for (_, character) in characters {
        if character == '\'' {
            return true;
        }
        word.push(character);
    }
    false
}

/// Reads to the closing `"`, and says whether there is one. Inside, a backslash quotes only what would mean something
/// to a shell there.
fn read_double(characters: &mut impl Iterator<Item = (usize, char)>, word: &mut String) -> bool {
    while let Some((_, character)) = characters.next() {
        match character {
            '"' => return true,
            '\\' => match characters.next() {
                Some((_, '\n')) => {}
                Some((_, quoted @ ('"' | '\\' | '$' | '`'))) => word.push(quoted),
                Some((_, other)) => word.extend(['\\', other]),
                None => return false,
            },
            other => word.push(other),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        let cases: [(&str, &[&str]); 9] = [
            ("bash -c 'cat > a.html'", &["bash", "-c", "cat > a.html"]),
            ("  a\t b\nc ", &["a", "b", "c"]),
            (r#"a"b c"'d e'f"#, &["ab cd ef"]),
            (r#""\$x \"q\" \n \\""#, &[r#"$x "q" \n \"#]),
            (r"a\ b \'c", &["a b", "'c"]),
            (r"'a\b'", &[r"a\b"]),
            ("x '' \"\"", &["x", "", ""]),
            ("a\\\nb", &["ab"]),
            ("prüfe 'ä ö'", &["prüfe", "ä ö"]),
        ];
        for (line, words) in cases {
            assert_eq!(split_command_line(line).unwrap(), words, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_split_says_where() {
        let cases = [
            ("", CommandLineError::Empty),
            (" \n", CommandLineError::Empty),
            ("a 'b", CommandLineError::OpenQuote { quote: '\'', at: 3 }),
            ("a \"b\\", CommandLineError::OpenQuote { quote: '"', at: 3 }),
            ("a\\", CommandLineError::TrailingBackslash),
            ("a\0b", CommandLineError::Nul),
        ];
        for (line, error) in cases {
            assert_eq!(split_command_line(line), Err(error), "{line:?}");
        }
    }
}
