//! A command that runs beside the program and is spoken to line by line.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::{ExternalConfig, ExternalError};

/// The longest reply that is read.
const LONGEST_REPLY: u64 = 64 * 1024;

/// A running command. Writing and reading have threads of their own, so that neither side waits for the other.
pub(super) struct Process {
    child: Child,
    /// Lines to write, each with its end.
    pub(super) requests: Sender<String>,
    /// Lines that it wrote, or what was wrong with one; closed when it ends.
    pub(super) replies: Receiver<Result<String, String>>,
}

impl Process {
    /// Starts it.
    pub(super) fn start(config: &ExternalConfig) -> Result<Self, ExternalError> {
        let (program, arguments) = config.command.split_first().expect("a checked command has a program");
        let failed = |source| ExternalError::Start { command: program.clone(), source };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(folder) = &config.folder {
            command.current_dir(folder);
        }
        let mut child = command.spawn().map_err(failed)?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::Error::other("its standard input and output are not to be had")));
        };
        let (requests, to_write) = channel::<String>();
        thread::spawn(move || {
            for line in to_write {
                if input.write_all(line.as_bytes()).and_then(|()| input.flush()).is_err() {
                    return;
                }
            }
        });
        let (read, replies) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(line) = next_line(&mut output) {
                if read.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, requests, replies })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, and there is nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line of bounded length; `None` at the end.
fn next_line(output: &mut impl BufRead) -> Option<Result<String, String>> {
    let mut line = Vec::new();
    match output.take(LONGEST_REPLY).read_until(b'\n', &mut line) {
        Ok(0) => None,
        Ok(_) if line.ends_with(b"\n") => {
            Some(String::from_utf8(line).map_err(|_| "expected UTF-8, got other bytes".into()))
        }
        Ok(_) => Some(Err(format!("a reply without an end, or longer than {LONGEST_REPLY} bytes"))),
        Err(error) => Some(Err(error.to_string())),
    }
}
