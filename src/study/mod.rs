//! A study: ways of training, compared at equal training tokens over several seeds.
//!
//! A *cell* is one arm with one seed: a run of [`crate::train`], whose last model answers held-out problems many times.
//! What is kept of the answers ([`samples`]) is little, and everything that the study says follows from it
//! ([`mod@results`]): accuracy at every budget of tokens and of latency, votes, and how sure the differences are
//! ([`bootstrap`]). So cells are made once, in pieces over several sittings if need be, and looked at as often as one
//! likes.

pub mod bootstrap;
pub mod config;
pub mod results;
pub mod samples;
pub mod training;

pub use config::{Study, StudyArm};
pub use results::{Cell, Results, results};
