//! One process writes a run. The lock is the system's, so it ends with the process, however that ends; the process id in
//! the file is for people.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;

use anyhow::Context;

use crate::failure::Failure;

/// Held while a process works on a run folder.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Makes the folder if need be, and takes its lock.
    pub(crate) fn take(run: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(run).with_context(|| format!("{}: cannot be made", run.display()))?;
        let path = run.join("lock");
        let context = || format!("{}: cannot be locked", path.display());
        let open = File::options().create(true).truncate(false).write(true).open(&path);
        let mut file = open.with_context(context)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(&path).unwrap_or_default();
                return Err(Failure::error(
                    format!("{}: process {} is working on this run", run.display(), holder.trim()),
                    "wait for it or stop it, or name another folder with `--out`",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(context),
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).with_context(context)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_locked_until_its_process_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::take(folder.path()).unwrap();
        let refused = Lock::take(folder.path()).err().unwrap().to_string();
        assert!(refused.contains(&format!("process {} is working", std::process::id())), "{refused}");
        drop(lock);
        assert!(Lock::take(folder.path()).is_ok());
    }

    #[test]
    fn what_a_dead_process_left_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("lock"), "999999999\n").unwrap();
        assert!(Lock::take(folder.path()).is_ok());
    }
}
