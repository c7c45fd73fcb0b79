//! Python as agents write it for one call: read statement by statement, values followed from the files they come from to
//! what is done with them. Nothing is run, and nothing makes it fail: a line that cannot be read is passed over.
//!
//! Why our own: the parsers to be had are internal parts of other tools, heavier than all of this crate, and give a tree
//! where a list of calls with their places is enough.

mod calls;
mod deeds;
mod eval;
mod lex;
mod read;
mod tokens;
mod value;
mod verdict;

pub(crate) use read::run;

use super::ledger::{Pictures, extension};
use super::programs::Arg;
use super::scene::{Scene, is_picture};

/// The pictures that a drawing program of the session leaves: those it names where it saves.
pub(crate) fn draw_outputs(scene: &mut Scene, code: &str, argv: &[Arg], shown: Pictures) {
    for text in super::programs::quoted(code) {
        if is_picture(&text) || matches!(&*extension(&text), "pdf" | "svg") {
            if scene.pictures(&text) != Pictures::SOURCE {
                scene.draw(&text, shown);
            }
        }
    }
    for arg in argv.iter().skip(1).filter(|it| is_picture(&it.text)) {
        scene.draw(&arg.text, shown);
    }
    for usual in ["output.png", "preview.png", "artifact.png", "out.png"] {
        if scene.known(usual).is_none() && !code.contains("savefig(") {
            scene.draw(usual, shown);
        }
    }
}
