//! The two controls: one that knows the answer, one that does nothing.

use crate::command::PlainText;
use crate::error::LaunchNeed;
use crate::launch::{Launch, LaunchRequest};
use crate::stream::StreamReader;
use crate::{Harness, HarnessError, HarnessName};

/// Writes the target program. The program comes through stdin, so that it is neither a file of the room nor an
/// argument before the very process that writes it (DESIGN §3.5).
#[derive(Debug)]
pub(crate) struct Oracle;

impl Harness for Oracle {
    fn kind(&self) -> HarnessName {
        HarnessName::Oracle
    }

    fn launch(&self, request: &LaunchRequest) -> Result<Launch, HarnessError> {
        let missing = HarnessError::Missing { harness: self.kind(), what: LaunchNeed::ORACLE };
        let answer = request.oracle.as_ref().ok_or(missing)?;
        // The name is an argument and no part of the script: the shell must not read it.
        let argv = ["/bin/sh", "-c", "exec cat > \"./$1\"", "oracle", &answer.artifact];
        Ok(Launch {
            argv: argv.map(str::to_owned).to_vec(),
            stdin: answer.program.clone(),
            ..Launch::default()
        })
    }

    fn stream(&self) -> Box<dyn StreamReader> {
        Box::new(PlainText::default())
    }
}

/// Ends at once and leaves nothing.
#[derive(Debug)]
pub(crate) struct Nop;

impl Harness for Nop {
    fn kind(&self) -> HarnessName {
        HarnessName::Nop
    }

    fn launch(&self, _: &LaunchRequest) -> Result<Launch, HarnessError> {
        Ok(Launch { argv: vec!["/bin/true".to_owned()], ..Launch::default() })
    }

    fn stream(&self) -> Box<dyn StreamReader> {
        Box::new(PlainText::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::OracleAnswer;

    #[test]
    fn the_answer_is_on_stdin_and_nowhere_else() {
        let secret = "<h1>the target</h1>";
        let answer = OracleAnswer { artifact: "artifact.html".to_owned(), program: secret.into() };
        let launch =
            Oracle.launch(&LaunchRequest { oracle: Some(answer), ..LaunchRequest::default() }).unwrap();
        assert_eq!(launch.stdin, secret.as_bytes());
        assert!(!format!("{:?}{:?}{:?}", launch.argv, launch.env, launch.home_files).contains("target"));
        assert!(!launch.needs_model);
    }

    #[test]
    fn it_writes_byte_for_byte_what_it_is_given() {
        let room = tempfile::tempdir().unwrap();
        let program = b"\0\xff'\"$1\n".to_vec();
        let answer = OracleAnswer { artifact: "-odd $name'.py".to_owned(), program: program.clone() };
        let request = LaunchRequest { oracle: Some(answer), ..LaunchRequest::default() };
        let launch = Oracle.launch(&request).unwrap();
        let stdin = room.path().join("stdin");
        std::fs::write(&stdin, &launch.stdin).unwrap();
        let status = std::process::Command::new(&launch.argv[0])
            .args(&launch.argv[1..])
            .current_dir(room.path())
            .stdin(std::fs::File::open(&stdin).unwrap())
            .status()
            .unwrap();
        assert!(status.success());
        assert_eq!(std::fs::read(room.path().join("-odd $name'.py")).unwrap(), program);
    }

    #[test]
    fn the_oracle_needs_its_answer() {
        assert!(matches!(Oracle.launch(&LaunchRequest::default()), Err(HarnessError::Missing { .. })));
    }
}
