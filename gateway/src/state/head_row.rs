//! How heads are stored: in the compact form that they have had from the first on, and behind it what came later.
//!
//! | then | |
//! |---|---|
//! | the head | without [`Meta::private_to`](oap_memory::record::Meta::private_to) |
//! | the DID of who the record stays private to | or nothing: none |

use oap_identity::Did;
use oap_memory::record::Head;
use oap_store::Codec;
use std::borrow::Cow;
use std::sync::Arc;

/// A head with everything that its record says.
#[derive(Debug)]
pub enum HeadRow {}

impl Codec<Head> for HeadRow {
    fn encode(head: &Head) -> Result<Cow<'_, [u8]>, postcard::Error> {
        let mut bytes = postcard::to_stdvec(head)?;
        if let Some(whose) = &head.meta.private_to {
            bytes.extend(postcard::to_stdvec(&**whose)?);
        }
        Ok(Cow::Owned(bytes))
    }

    fn decode(bytes: Vec<u8>) -> Result<Head, postcard::Error> {
        let (mut head, behind): (Head, &[u8]) = postcard::take_from_bytes(&bytes)?;
        if !behind.is_empty() {
            head.meta.private_to = Some(Arc::new(postcard::from_bytes::<Did>(behind)?));
        }
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::{ItemId, Timestamp};
    use oap_memory::item::{Body, Defaults, Sensitivity};
    use oap_memory::record::{Few, Meta, Visibility};
    use oap_store::Compact;
    use serde_json::json;

    #[test]
    fn a_row_of_an_earlier_version_is_read_and_the_new_member_comes_back() {
        let (owner, agent): (Did, Did) =
            ("did:web:a.example".parse().unwrap(), "did:web:b.example".parse().unwrap());
        let (scope, now) = ("personal".parse().unwrap(), Timestamp::from_millis(0));
        let item = json!({"kind": "fact", "content": {"text": "x"}});
        let body = Body::parse(&item, &Defaults { principal: &owner, scope: &scope, now }).unwrap();
        let meta = Meta { visibility: Visibility::Private, ..Meta::owner(agent.clone(), false) };
        let mut head = Head::new(ItemId::from_bytes([0; 16]), &body, meta);
        head.few = Few::new(vec![ItemId::from_bytes([7; 16])], vec!["Ada".to_owned()]);
        let former = Compact::encode(&head).unwrap().into_owned();
        // As two lists, one after the other.
        let id = postcard::to_stdvec(&ItemId::from_bytes([7; 16])).unwrap();
        assert!(former.ends_with(&[&[1], id.as_slice(), b"\x01\x03Ada"].concat()));
        assert_eq!(HeadRow::encode(&head).unwrap(), former);
        assert_eq!(HeadRow::decode(former).unwrap(), head);

        head.write_as(owner.clone(), &owner);
        assert_eq!((&*head.meta.author, &**head.meta.whose()), (&owner, &agent));
        let row = HeadRow::encode(&head).unwrap().into_owned();
        assert_eq!(HeadRow::decode(row.clone()).unwrap(), head);
        // What is cut off within the DID is no row.
        assert!(HeadRow::decode(row[..row.len() - 1].to_vec()).is_err());

        // The owner's next word leaves it where it is; the agent's own is the agent's.
        head.write_as(owner.clone(), &owner);
        assert_eq!(**head.meta.whose(), agent);
        head.write_as(agent.clone(), &owner);
        assert_eq!((&*head.meta.author, &head.meta.private_to), (&agent, &None));
        // What the owner restricts is the owner's alone.
        let mut hidden = head.clone();
        hidden.sensitivity = Sensitivity::Restricted;
        hidden.write_as(owner.clone(), &owner);
        assert_eq!(hidden.meta.private_to, None);
        // What others see is the owner's, as everything that the owner corrects.
        head.meta.visibility = Visibility::Local;
        head.write_as(owner.clone(), &owner);
        assert_eq!((&*head.meta.author, &head.meta.private_to), (&owner, &None));
    }
}
