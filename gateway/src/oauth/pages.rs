//! The pages of `/oauth/authorize`, for the person at the browser. They have no script, no style and nothing from elsewhere; what the client
//! says of itself is escaped, and bounded before it comes here.

use super::OAuthError;
use std::fmt::{self, Display};

/// What the browser may load and do: nothing.
pub const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Seconds until a page that waits asks again.
pub const AGAIN: u32 = 3;

/// Text as it stands in HTML, in elements and in quoted attributes.
struct Text<T>(T);

impl<T: Display> Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.to_string().chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// A whole page; `reload` where it waits for something.
fn page(title: &str, reload: bool, body: &str) -> String {
    let reload =
        if reload { format!("<meta http-equiv=\"refresh\" content=\"{AGAIN}\">") } else { String::new() };
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">{reload}<meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title></head>\n<body><h1>{title}</h1>\n{body}\n</body></html>\n"
    )
}

/// What a request that waits is shown as.
pub struct Shown<'a> {
    /// What the client calls itself.
    pub name: &'a str,
    /// By what it is known.
    pub client: &'a str,
    /// The host that the answer goes to.
    pub host: &'a str,
    /// Whether that is the person's own machine.
    pub is_loopback: bool,
    /// The scopes that it asks for.
    pub scopes: &'a str,
    /// What the owner types.
    pub code: &'a str,
}

/// A client waits for the owner.
#[must_use]
pub fn waiting(shown: &Shown<'_>) -> String {
    let Shown { name, client, host, is_loopback, scopes, code } = *shown;
    let local = if is_loopback {
        "<p>That is a program on the machine of this browser. Any program there can use another one's name.</p>\n"
    } else {
        ""
    };
    let (name, client, host, scopes, code) = (Text(name), Text(client), Text(host), Text(scopes), Text(code));
    page(
        "A program asks for your memory",
        true,
        &format!(
            "<p>It calls itself <b>{name}</b>. Its id is <code>{client}</code>.</p>\n\
             <p>The answer goes to <b>{host}</b>.</p>\n{local}\
             <p>It asks for: <code>{scopes}</code>.</p>\n\
             <p>Only if you have just started this yourself, run on the machine of your memory gateway:</p>\n\
             <pre>oap-memory agent consent approve {code} --as AGENT</pre>\n\
             <p>AGENT is the agent whose memory it is to use; <code>--permission read</code> gives less. To refuse: \
             <code>oap-memory agent consent decline {code}</code>. Never give this code to anybody who asks you for it.</p>\n\
             <p>This page looks for your answer by itself.</p>"
        ),
    )
}

/// The owner said no. The person goes back by their own click: nobody is sent to an address that the owner refused.
#[must_use]
pub fn declined(host: &str, address: &str) -> String {
    let (host, address) = (Text(host), Text(address));
    page(
        "Refused",
        false,
        &format!(
            "<p>The owner of this memory said no.</p>\n\
             <p><a href=\"{address}\" rel=\"noreferrer\">Tell the program at {host}</a>, or close this page.</p>"
        ),
    )
}

/// There is nothing to answer any more.
#[must_use]
pub fn over() -> String {
    page(
        "Over",
        false,
        "<p>This request was answered, or nobody answered it in time, or another browser opened it, or this one keeps no cookies. Begin \
         anew in the program that sent you here.</p>",
    )
}

/// A request that is refused. The browser stays here: an address that was not checked is no place to send anybody.
#[must_use]
pub fn refused(error: OAuthError) -> String {
    let body = format!(
        "<p>The program that sent you here asked in a way that is not served:</p>\n<p><code>{}</code> {}</p>",
        Text(error.code()),
        Text(error)
    );
    page("Not served", false, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_text() {
        let name = "</b><script>alert(1)</script>\"'&<meta http-equiv=refresh content=0;url=//evil>";
        let page = waiting(&Shown {
            name,
            client: "https://app.example/\"><img src=x>",
            host: "app.example",
            is_loopback: true,
            scopes: "memory.read",
            code: "ABCD-EFGH",
        });
        assert!(
            !page.contains("<script") && !page.contains("<img") && page.matches("<meta").count() == 3,
            "{page}"
        );
        assert!(page.contains("&lt;/b&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"), "{page}");
        assert!(page.contains("approve ABCD-EFGH --as"));
        let no = declined("a\"b", "https://app.example/?a=1&b=\"><script>");
        assert!(no.contains("href=\"https://app.example/?a=1&amp;b=&quot;&gt;&lt;script&gt;\""), "{no}");
    }
}
