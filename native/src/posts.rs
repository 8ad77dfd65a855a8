//! The places of what a posted send consists of, a tuple; `Posted` of `plain_sends` has the same.
//! Every other request that waits for its response is a shorter one.

pub(crate) const DEADLINE: usize = 1;
pub(crate) const CODE: usize = 2;
pub(crate) const LIMIT: usize = 3;
pub(crate) const OPAQUE: usize = 4;
pub(crate) const TEMPLATE: usize = 5;
pub(crate) const TAIL: usize = 6;
pub(crate) const PREFIX: usize = 7;
pub(crate) const NUMBER: usize = 8;
pub(crate) const BORN: usize = 9;
pub(crate) const MESSAGE: usize = 10;
pub(crate) const QUEUE: usize = 11;
pub(crate) const ASKED: usize = 14;
pub(crate) const WINDOW: usize = 15;
