//! How a gRPC call begins: its path, its metadata and its deadline, read where they are needed.

use std::sync::Arc;

use http::header::HeaderName;
use http::request::Parts;
use http::HeaderMap;

/// The metadata that is handed over; a name that no header can have is none.
pub type Names = Arc<[Option<HeaderName>]>;

/// The headers of a call.
#[derive(Clone)]
pub struct Head {
    parts: Parts,
    names: Names,
}

/// Return names as headers have them.
pub fn names(texts: &[String]) -> Names {
    let found = texts.iter().map(|name| name.parse().ok());
    found.collect()
}

impl Head {
    /// Keep the headers of a call, whose fields of these names are asked for.
    pub fn new(parts: Parts, names: Names) -> Self {
        Head { parts, names }
    }

    /// The path: service and method.
    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// The value of the first field that is asked for.
    pub fn first(&self) -> Option<&str> {
        text(&self.parts.headers, self.names.first()?.as_ref()?)
    }

    /// The values of all fields that are asked for.
    pub fn fields(&self) -> Vec<Option<&str>> {
        let value = |name: &Option<HeaderName>| text(&self.parts.headers, name.as_ref()?);
        self.names.iter().map(value).collect()
    }

    /// Seconds until the client's deadline.
    pub fn timeout(&self) -> Option<f64> {
        let value = self.parts.headers.get("grpc-timeout")?.as_bytes();
        seconds(std::str::from_utf8(value).ok()?)
    }
}

/// Return a header as text; None if it is not there, or is not text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    std::str::from_utf8(headers.get(name)?.as_bytes()).ok()
}

/// Read gRPC's form of a time: up to eight digits and a unit.
fn seconds(text: &str) -> Option<f64> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: f64 = digits.parse().ok()?;
    match unit {
        "H" => Some(count * 3600.0),
        "M" => Some(count * 60.0),
        "S" => Some(count),
        "m" => Some(count / 1e3),
        "u" => Some(count / 1e6),
        "n" => Some(count / 1e9),
        _ => None,
    }
}
