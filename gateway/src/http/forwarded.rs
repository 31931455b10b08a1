//! Who calls, when a reverse proxy stands before the gateway: `X-Forwarded-For` and `Forwarded` (RFC 7239).
//!
//! A header counts only from a peer that the configuration trusts (`trusted_proxies`), and only from its right end on: each
//! proxy appends whom it saw, so everything left of the first address that is no trusted proxy's is what that caller wrote
//! itself. A proxy appends to one of the two headers and passes the other on as the caller wrote it. So where both are
//! there, neither counts, and the caller is the proxy's own address.

use crate::system::address::Network;
use axum::http::{HeaderMap, header};
use std::net::{IpAddr, Ipv6Addr};

/// Proxies that are followed back, at most.
pub const MAX_HOPS: usize = 16;

/// The older header.
const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of the caller: the peer's, or what trusted proxies say of it. An entry that is no address ends the search
/// at the proxy that passed it on.
#[must_use]
pub fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let peer = peer.to_canonical();
    let by_forwarded = headers.contains_key(header::FORWARDED);
    if !is_trusted(peer) || (by_forwarded && headers.contains_key(X_FORWARDED_FOR)) {
        return peer;
    }
    let (name, read): (_, fn(&str) -> Option<IpAddr>) =
        if by_forwarded { (header::FORWARDED.as_str(), for_of) } else { (X_FORWARDED_FOR, node) };
    let mut caller = peer;
    let lines = headers.get_all(name).iter().rev();
    let hops = lines.flat_map(|line| Elements(Some(line.as_bytes()))).take(MAX_HOPS);
    for hop in hops {
        let Some(address) = std::str::from_utf8(hop).ok().and_then(|hop| read(hop.trim())) else { break };
        caller = address;
        if !is_trusted(address) {
            break;
        }
    }
    caller
}

/// The elements of a list, from its right end: what a caller wrote on the left, such as a quote that never ends, changes
/// nothing in what proxies wrote to the right of it.
struct Elements<'a>(Option<&'a [u8]>);

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];
    fn next(&mut self) -> Option<&'a [u8]> {
        let left = self.0?;
        let mut quoted = false;
        let comma = left.iter().rposition(|byte| {
            quoted ^= *byte == b'"';
            *byte == b',' && !quoted
        });
        let (rest, element) = match comma.and_then(|at| left.split_at_checked(at)) {
            Some((rest, element)) => (Some(rest), element.get(1..).unwrap_or_default()),
            None => (None, left),
        };
        self.0 = rest;
        Some(element)
    }
}

/// The address of an element of `Forwarded`: the one `for` in it.
fn for_of(element: &str) -> Option<IpAddr> {
    let mut found = element.split(';').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then_some(value.trim())
    });
    let value = found.next().filter(|_| found.next().is_none())?;
    let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    node(bare)
}

/// An address, with or without a port: `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]`,
/// `[2001:db8::1]:4711`.
fn node(text: &str) -> Option<IpAddr> {
    let address = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((v6, rest)) => rest
            .strip_prefix(':')
            .map_or(rest.is_empty(), is_port)
            .then(|| v6.parse::<Ipv6Addr>().ok())??
            .into(),
        None => text.parse::<IpAddr>().ok().or_else(|| {
            let (address, port) = text.split_once(':')?;
            is_port(port).then(|| address.parse().ok())?
        })?,
    };
    Some(address.to_canonical())
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    const PROXY: &str = "10.0.0.1";

    fn caller(peer: &str, lines: &[(&str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        client(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    fn by_x(value: &str) -> String {
        caller(PROXY, &[("x-forwarded-for", value)])
    }

    fn by_forwarded(value: &str) -> String {
        caller(PROXY, &[("forwarded", value)])
    }

    #[test]
    fn a_stranger_cannot_say_who_he_is() {
        for header in ["x-forwarded-for", "forwarded"] {
            for value in ["198.51.100.7", "for=198.51.100.7", "10.0.0.2", ""] {
                assert_eq!(caller("203.0.113.9", &[(header, value)]), "203.0.113.9");
            }
        }
        assert_eq!(caller("203.0.113.9", &[]), "203.0.113.9");
        // Trusted by nobody, in whatever dress.
        assert_eq!(caller("::ffff:203.0.113.9", &[("x-forwarded-for", "10.0.0.1")]), "203.0.113.9");
    }

    #[test]
    fn a_trusted_proxy_is_believed_from_the_right() {
        assert_eq!(by_x("203.0.113.9"), "203.0.113.9");
        // What the caller wrote itself stands on the left.
        assert_eq!(by_x("198.51.100.7, 203.0.113.9"), "203.0.113.9");
        assert_eq!(by_x("10.0.0.9, 203.0.113.9"), "203.0.113.9");
        // Through two proxies of ours.
        assert_eq!(by_x("198.51.100.7, 203.0.113.9, 10.0.0.2"), "203.0.113.9");
        // Lines are one list.
        let lines = [("x-forwarded-for", "198.51.100.7"), ("x-forwarded-for", "203.0.113.9")];
        assert_eq!(caller(PROXY, &lines), "203.0.113.9");
        assert_eq!(caller("::ffff:10.0.0.1", &lines), "203.0.113.9");
        assert_eq!(by_forwarded("for=198.51.100.7, For=203.0.113.9;proto=https;by=10.0.0.1"), "203.0.113.9");
        // A call of the proxy's own.
        assert_eq!(by_x("10.0.0.2"), "10.0.0.2");
        assert_eq!(caller(PROXY, &[]), PROXY);
    }

    #[test]
    fn addresses_in_all_their_forms() {
        for (value, expected) in [
            ("203.0.113.9:4711", "203.0.113.9"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
        ] {
            assert_eq!(by_x(value), expected, "{value}");
            assert_eq!(by_forwarded(&format!("for=\"{value}\"")), expected, "{value}");
        }
    }

    #[test]
    fn what_is_no_address_ends_the_search_at_the_proxy() {
        for garbage in [
            "",
            ",",
            "unknown",
            "_hidden",
            "203.0.113",
            "203.0.113.9:",
            "203.0.113.9:99999",
            "203.0.113.9:+1",
            "203.0.113.9 198.51.100.7",
            "[2001:db8::1",
            "[2001:db8::1]x",
            "[203.0.113.9]",
            "fe80::1%eth0",
            "\u{ff}",
        ] {
            assert_eq!(by_x(garbage), PROXY, "{garbage}");
            assert_eq!(by_x(&format!("198.51.100.7, {garbage}")), PROXY, "{garbage}");
            assert_eq!(by_forwarded(&format!("for=198.51.100.7, for={garbage}")), PROXY, "{garbage}");
        }
        assert_eq!(by_forwarded("proto=https"), PROXY);
        assert_eq!(by_forwarded("for=198.51.100.7;for=203.0.113.9"), PROXY);
        // An older entry of ours is known, the one left of it is not.
        assert_eq!(by_x("garbage, 10.0.0.2"), "10.0.0.2");
    }

    #[test]
    fn a_quote_that_never_ends_hides_nothing() {
        assert_eq!(by_forwarded("for=\"198.51.100.7, for=203.0.113.9"), "203.0.113.9");
        assert_eq!(by_forwarded("for=\"198.51.100.7, x\\\", for=\"203.0.113.9\""), "203.0.113.9");
        assert_eq!(by_forwarded("x=\", for=198.51.100.7, for=\"203.0.113.9:1\""), "203.0.113.9");
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_a_caller_writes_hides_what_a_proxy_appends(
            left in proptest::collection::vec(0x20_u8..0x7f, 0..64),
        ) {
            let left = String::from_utf8(left).unwrap();
            proptest::prop_assert_eq!(by_x(&format!("{left}, 203.0.113.9")), "203.0.113.9");
            for appended in ["for=203.0.113.9", "for=\"203.0.113.9:4711\";proto=\"https\""] {
                proptest::prop_assert_eq!(by_forwarded(&format!("{left}, {appended}")), "203.0.113.9");
            }
            // From a stranger it counts for nothing.
            for header in ["x-forwarded-for", "forwarded"] {
                proptest::prop_assert_eq!(caller("203.0.113.9", &[(header, &left)]), "203.0.113.9");
            }
        }
    }

    #[test]
    fn of_two_headers_one_is_the_callers_own() {
        let both = [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=198.51.100.7")];
        assert_eq!(caller(PROXY, &both), PROXY);
    }

    #[test]
    fn a_long_list_is_followed_for_so_many_hops() {
        let line = vec!["10.0.0.2"; 100_000].join(",");
        assert_eq!(by_x(&format!("203.0.113.9,{line}")), "10.0.0.2");
        assert_eq!(by_x(&format!("203.0.113.9{}", ",10.0.0.2".repeat(MAX_HOPS - 1))), "203.0.113.9");
    }
}
