//! Real artifacts in real rooms: needs a container engine and the toolchain image, and says so when one is missing.

mod good;
mod hostile;
mod studio;
