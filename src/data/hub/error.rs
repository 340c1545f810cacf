//! What can go wrong between a name and the files it stands for.

use std::path::PathBuf;

use super::Kind;

/// What can go wrong between a name on the Hub and its files on this machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// The text is no name on the Hub.
    #[error("{kind} {text:?}: {reason}")]
    Name {
        /// What was looked for.
        kind: Kind,
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The Hub's address is none.
    #[error("the Hub's address (HF_ENDPOINT): expected http://… or https://…, got {endpoint:?}")]
    Endpoint {
        /// What it is set to.
        endpoint: String,
    },
    /// The Hub doesn't know the repository.
    #[error("{kind} {repo:?}: no such folder or file here, and no such repository on {endpoint}")]
    Repository {
        /// What was looked for.
        kind: Kind,
        /// `org/name`.
        repo: String,
        /// The Hub's address.
        endpoint: String,
    },
    /// The repository has no such branch, tag or commit.
    #[error("{kind} {repo:?} has no revision {revision:?}")]
    Revision {
        /// What was looked for.
        kind: Kind,
        /// `org/name`.
        repo: String,
        /// The branch, tag or commit.
        revision: String,
    },
    /// The repository has no such file.
    #[error("{kind} {repo:?} has no file {file:?} (revision {revision})")]
    File {
        /// What was looked for.
        kind: Kind,
        /// `org/name`.
        repo: String,
        /// The file.
        file: String,
        /// The branch, tag or commit.
        revision: String,
    },
    /// The Hub wants to know who asks. It says the same of a repository that doesn't exist.
    #[error(
        "{kind} {repo:?}: {endpoint} answered {status}: it is private, gated, or not there ({})",
        if *token { "the token has no access to it" } else { "no token was sent" }
    )]
    Denied {
        /// What was looked for.
        kind: Kind,
        /// `org/name`.
        repo: String,
        /// The Hub's address.
        endpoint: String,
        /// 401 or 403.
        status: u16,
        /// Whether a token was sent.
        token: bool,
    },
    /// Not in the cache, and the network may not be used.
    #[error("{kind} {name:?}: not, or not whole, in the cache {}, and HF_HUB_OFFLINE is set", cache.display())]
    Offline {
        /// What was looked for.
        kind: Kind,
        /// The name.
        name: String,
        /// The cache.
        cache: PathBuf,
    },
    /// Not in the cache, and the Hub doesn't answer.
    #[error(
        "{kind} {name:?}: no such folder or file here, not in the cache {}, and {endpoint} can't be reached: {reason}",
        cache.display()
    )]
    Unreachable {
        /// What was looked for.
        kind: Kind,
        /// The name.
        name: String,
        /// The cache.
        cache: PathBuf,
        /// The Hub's address.
        endpoint: String,
        /// Why not.
        reason: String,
    },
    /// A download broke off again and again. What has come is kept.
    #[error("{url}: broke off {attempts} times without a byte between: {reason}")]
    BrokenOff {
        /// What was asked for.
        url: String,
        /// How often in a row.
        attempts: u32,
        /// Why, the last time.
        reason: String,
    },
    /// An answer that is neither the file nor one of the above.
    #[error("{url}: answered {status}")]
    Status {
        /// What was asked for.
        url: String,
        /// The answer's status.
        status: u16,
    },
    /// An answer that isn't what the Hub says.
    #[error("{url}: {reason}")]
    Reply {
        /// What was asked for.
        url: String,
        /// What was expected, and what came.
        reason: String,
    },
    /// A file that isn't the one the Hub announced.
    #[error("{file} came damaged (its SHA-256 is not the announced {expected}) and was removed")]
    Damaged {
        /// The file.
        file: String,
        /// The announced sum.
        expected: String,
    },
    /// More than is taken.
    #[error("{kind} {repo:?}: expected at most {limit} {unit}, got {got}")]
    TooMuch {
        /// What was looked for.
        kind: Kind,
        /// `org/name`.
        repo: String,
        /// Of what there is too much.
        unit: &'static str,
        /// The most.
        limit: u64,
        /// How much there is.
        got: u64,
    },
    /// The repository stands for no file or folder as a whole.
    #[error("{kind} {repo:?}: name one of its files, as in `{repo}/{}`: {}", files[0], shown(files))]
    Several {
        /// What was looked for.
        kind: Kind,
        /// `org/name`.
        repo: String,
        /// The files, at least one.
        files: Vec<String>,
    },
    /// The repository holds nothing of use.
    #[error("{kind} {repo:?}: expected {}", kind.expected())]
    Nothing {
        /// What was looked for.
        kind: Kind,
        /// `org/name`.
        repo: String,
    },
    /// The cache can't be read or written.
    #[error("{}: {source}", path.display())]
    Cache {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The first names of a list.
fn shown(files: &[String]) -> String {
    const SHOWN: usize = 20;
    let rest = files.len().saturating_sub(SHOWN);
    let names = files[..files.len() - rest].join(", ");
    if rest == 0 { names } else { format!("{names} and {rest} more") }
}
