//! RFC 9901: the public test cases of sd-jwt-python, the examples of the RFC itself, and the refusals of its
//! section 7.1. `tests/vectors/README.md` names the source of the cases.

#[path = "../../identity/tests/support/beside.rs"]
mod beside;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_identity::random::Seeded;
use oap_memory::sd_jwt::{Child, Disclosure, Node, Presentation, SdJwtError, conceal};
use serde_json::{Map, Value as Json, json};
use serde_yaml_ng::Value as Yaml;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// A payload under a header and a signature that nobody checks here.
fn unsigned(payload: &Json) -> String {
    format!(
        "{}.{}.{}",
        B64.encode(r#"{"alg":"EdDSA"}"#),
        B64.encode(payload.to_string()),
        B64.encode([0; 64])
    )
}

fn present(payload: &Json, disclosures: &[String]) -> String {
    let mut payload = payload.clone();
    if payload.get("_sd_alg").is_none() {
        payload["_sd_alg"] = json!("sha-256");
    }
    let mut text = unsigned(&payload) + "~";
    for disclosure in disclosures {
        text += disclosure;
        text.push('~');
    }
    text
}

fn reveal(payload: &Json, disclosures: &[String]) -> Result<Json, SdJwtError> {
    Ok(Json::Object(Presentation::parse(&present(payload, disclosures))?.reveal()?))
}

// --- the cases of sd-jwt-python ---

/// Claims of which the places in `concealed` (JSON Pointers) are concealed.
fn node(claims: &Json, at: &str, concealed: &BTreeSet<&str>) -> Node {
    let child = |value: &Json, at: String| Child {
        node: node(value, &at, concealed),
        concealed: concealed.contains(at.as_str()),
    };
    match claims {
        Json::Object(members) => Node::Object(
            members.iter().map(|(name, value)| (name.clone(), child(value, below(at, name)))).collect(),
        ),
        Json::Array(elements) => Node::Array(
            elements.iter().enumerate().map(|(n, value)| child(value, below(at, &n.to_string()))).collect(),
        ),
        leaf => Node::Leaf(leaf.clone()),
    }
}

/// A place below another, as a JSON Pointer.
fn below(at: &str, step: &str) -> String {
    format!("{at}/{}", step.replace('~', "~0").replace('/', "~1"))
}

fn places(vector: &Json, member: &str) -> BTreeSet<String> {
    vector[member].as_array().unwrap().iter().map(|place| place.as_str().unwrap().to_owned()).collect()
}

/// Where a disclosure is of.
fn place(disclosure: &Disclosure) -> String {
    use oap_memory::tree::Step;
    let mut at = String::new();
    for step in disclosure.path().steps() {
        at = match step {
            Step::Member(name) => below(&at, name),
            Step::Element(n) => below(&at, &n.to_string()),
        };
    }
    at
}

#[test]
fn cases_of_sd_jwt_python() {
    let vectors: Vec<Json> =
        serde_json::from_slice(&std::fs::read(beside::own("sd-jwt.json")).unwrap()).unwrap();
    for vector in &vectors {
        let (concealed, shown) = (places(vector, "concealed"), places(vector, "shown"));
        let concealed = concealed.iter().map(String::as_str).collect();
        let Node::Object(claims) = node(&vector["claims"], "", &concealed) else { panic!() };
        for decoys in [false, true] {
            let (payload, disclosures) = conceal(&claims, decoys, &Seeded::new(1)).unwrap();
            assert_eq!(disclosures.len(), concealed.len(), "{}", vector["number"]);
            let chosen = disclosures.iter().filter(|d| shown.contains(&place(d)));
            let chosen: Vec<String> = chosen.map(Disclosure::encoded).collect();
            let revealed = reveal(&Json::Object(payload.clone()), &chosen).unwrap();
            assert_eq!(revealed, vector["expected"], "{}", vector["number"]);
            let all: Vec<String> = disclosures.iter().map(Disclosure::encoded).collect();
            assert!(reveal(&Json::Object(payload), &all).is_ok(), "{}", vector["number"]);
        }
    }
    assert_eq!(vectors.len(), 17);
}

/// A case of the source in our form: its tags as places.
fn in_our_form(number: usize, case: &Yaml) -> Json {
    let mut concealed = Vec::new();
    let claims = untagged(&case["user_claims"], "", &mut concealed);
    let shown: Vec<&String> =
        concealed.iter().filter(|at| is_shown(&case["holder_disclosed_claims"], at)).collect();
    json!({
        "number": number, "claims": claims, "concealed": concealed, "shown": shown,
        "expected": serde_json::to_value(&case["expect_verified_user_claims"]).unwrap(),
    })
}

fn untagged(value: &Yaml, at: &str, concealed: &mut Vec<String>) -> Json {
    match value {
        Yaml::Tagged(tagged) => {
            concealed.push(at.to_owned());
            untagged(&tagged.value, at, concealed)
        }
        Yaml::Mapping(members) => {
            let mut object = Map::new();
            for (name, value) in members {
                let (name, tagged) = match name {
                    Yaml::Tagged(tagged) => (&tagged.value, true),
                    name => (name, false),
                };
                let name = name.as_str().unwrap();
                let at = below(at, name);
                if tagged {
                    concealed.push(at.clone());
                }
                object.insert(name.to_owned(), untagged(value, &at, concealed));
            }
            Json::Object(object)
        }
        Yaml::Sequence(values) => {
            let elements = values.iter().enumerate();
            elements.map(|(n, value)| untagged(value, &below(at, &n.to_string()), concealed)).collect()
        }
        leaf => serde_json::to_value(leaf).unwrap(),
    }
}

/// Whether the holder shows what is at a place. `True` for a whole part shows it with all its own parts.
fn is_shown(wanted: &Yaml, place: &str) -> bool {
    let mut at = wanted;
    for step in place.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")) {
        if at.as_bool() == Some(true) {
            return true;
        }
        let next = match at {
            Yaml::Sequence(elements) => step.parse::<usize>().ok().and_then(|n| elements.get(n)),
            at => at.get(step.as_str()),
        };
        match next {
            Some(next) => at = next,
            None => return false,
        }
    }
    !matches!(at, Yaml::Null | Yaml::Bool(false))
}

#[test]
#[ignore = "needs the public vectors (OAP_SHARED or ../shared): vectors/sd-jwt"]
fn the_values_of_sd_jwt_python_are_those_of_their_source() {
    let mut files: Vec<_> = std::fs::read_dir(beside::place("vectors/sd-jwt"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let made = files.iter().enumerate().map(|(number, path)| {
        let case: Yaml = serde_yaml_ng::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        in_our_form(number, &case)
    });
    beside::same_as_source("sd-jwt.json", &made.collect::<Vec<_>>());
}

// --- RFC 9901 section 5 ---

const RFC_DISCLOSURES: [(&str, &str); 3] = [
    (
        "WyIyR0xDNDJzS1F2ZUNmR2ZyeU5STjl3IiwgImdpdmVuX25hbWUiLCAiSm9obiJd",
        "jsu9yVulwQQlhFlM_3JlzMaSFzglhQG0DpfayQwLUK4",
    ),
    (
        "WyJlbHVWNU9nM2dTTklJOEVZbnN4QV9BIiwgImZhbWlseV9uYW1lIiwgIkRvZSJd",
        "TGf4oLbgwd5JQaHyKVQZU9UdGE0w5rtDsrZzfUaomLo",
    ),
    ("WyJsa2x4RjVqTVlsR1RQVW92TU5JdkNBIiwgIlVTIl0", "pFndjkZ_VCzmyTa6UjlZo3dh-ko8aIKQc9DlGzhaVYo"),
];

#[test]
fn example_of_rfc_9901_section_5() {
    let payload = json!({
        "_sd": [
            "CrQe7S5kqBAHt-nMYXgc6bdt2SH5aTY1sU_M-PgkjPI", "JzYjH4svliH0R3PyEMfeZu6Jt69u5qehZo7F7EPYlSE",
            "PorFbpKuVu6xymJagvkFsFXAbRoc2JGlAUA2BA4o7cI", "TGf4oLbgwd5JQaHyKVQZU9UdGE0w5rtDsrZzfUaomLo",
            "XQ_3kPKt1XyX7KANkqVR6yZ2Va5NrPIvPYbyMvRKBMM", "XzFrzwscM6Gn6CJDc6vVK8BkMnfG8vOSKfpPIZdAfdE",
            "gbOsI4Edq2x2Kw-w5wPEzakob9hV1cRD0ATN3oQL9JM", "jsu9yVulwQQlhFlM_3JlzMaSFzglhQG0DpfayQwLUK4",
        ],
        "iss": "https://issuer.example.com", "iat": 1_683_000_000, "exp": 1_883_000_000, "sub": "user_42",
        "nationalities": [
            {"...": "pFndjkZ_VCzmyTa6UjlZo3dh-ko8aIKQc9DlGzhaVYo"},
            {"...": "7Cf6JkPudry3lcbwHgeZ8khAv1U1OSlerP0VkBJrWZ0"},
        ],
        "_sd_alg": "sha-256",
    });
    let all: Vec<String> = RFC_DISCLOSURES.iter().map(|(d, _)| (*d).to_owned()).collect();
    let revealed = reveal(&payload, &all).unwrap();
    assert_eq!(revealed["given_name"], "John");
    assert_eq!(revealed["family_name"], "Doe");
    assert_eq!(revealed["nationalities"], json!(["US"]));
    assert!(revealed.get("_sd").is_none() && revealed.get("_sd_alg").is_none());
    let none = reveal(&payload, &[]).unwrap();
    assert_eq!(none["nationalities"], json!([]));
    assert!(none.get("given_name").is_none());
}

// --- the refusals of section 7.1 ---

fn concealed(claims: &Json) -> (Map<String, Json>, Vec<String>) {
    let Node::Object(members) = Node::concealed(claims) else { panic!() };
    let (payload, disclosures) = conceal(&members, true, &Seeded::new(2)).unwrap();
    (payload, disclosures.iter().map(Disclosure::encoded).collect())
}

#[test]
fn refusals() {
    let (payload, disclosures) = concealed(&json!({"a": 1, "b": [2, 3]}));
    let payload = Json::Object(payload);
    let refused = |payload: &Json, disclosures: &[String]| reveal(payload, disclosures).unwrap_err();
    assert!(reveal(&payload, &disclosures).is_ok());

    let injected = B64.encode(r#"["c2FsdA","admin",true]"#);
    let with = |extra: &str| [disclosures.clone(), vec![extra.to_owned()]].concat();
    assert!(matches!(refused(&payload, &with(&injected)), SdJwtError::Disclosures(_)));
    assert!(matches!(refused(&payload, &with(&disclosures[0])), SdJwtError::RepeatedDisclosure(_)));

    for malformed in [r#"["s"]"#, r#"["s","n",1,2]"#, r#"[1,"n",2]"#, r#"{"s":1}"#, r#"["s",1,2]"#, "["] {
        assert!(reveal(&payload, &with(&B64.encode(malformed))).is_err(), "{malformed}");
    }
    for reserved in ["_sd", "...", "_sd_alg"] {
        let named = B64.encode(json!(["s", reserved, []]).to_string());
        assert_eq!(refused(&payload, &with(&named)), SdJwtError::Reserved(reserved.into()));
    }
    let mut repeated = payload.clone();
    let digest = repeated["_sd"][0].clone();
    repeated["_sd"].as_array_mut().unwrap().push(digest);
    assert_eq!(refused(&repeated, &[]), SdJwtError::RepeatedDigest);

    let mut collides = payload.clone();
    collides["a"] = json!("clear");
    assert!(matches!(refused(&collides, &disclosures), SdJwtError::Disclosures(_)));

    let mut algorithm = payload.clone();
    algorithm["_sd_alg"] = json!("md5");
    assert_eq!(refused(&algorithm, &[]), SdJwtError::Algorithm);

    // A parent's part without the parent.
    let orphan = disclosures.iter().find(|d| B64.decode(d).unwrap().ends_with(b",2]")).unwrap();
    assert!(matches!(refused(&payload, std::slice::from_ref(orphan)), SdJwtError::Disclosures(_)));

    let bound = present(&payload, &disclosures) + &unsigned(&json!({}));
    assert!(matches!(Presentation::parse(&bound), Err(SdJwtError::KeyBinding)));
    assert!(matches!(Presentation::parse("a.b.c"), Err(SdJwtError::Malformed)));
    assert!(matches!(Presentation::parse("a.b~"), Err(SdJwtError::Malformed)));
}

#[test]
fn digest_arrays_are_sorted_and_do_not_count() {
    for members in 1..20 {
        let claims: Map<String, Json> = (0..members).map(|i| (format!("m{i}"), json!(i))).collect();
        let (payload, _) = concealed(&Json::Object(claims));
        let digests: Vec<&str> =
            payload["_sd"].as_array().unwrap().iter().map(|d| d.as_str().unwrap()).collect();
        assert!(digests.is_sorted());
        assert_eq!(digests.len(), usize::next_multiple_of(members, 8).max(16));
    }
}

#[test]
fn salts_are_128_bits_and_never_repeat() {
    let (_, disclosures) = concealed(&json!({"a": 1, "b": 1, "c": [1, 1, {"d": 1}]}));
    let mut salts: Vec<String> = disclosures
        .iter()
        .map(|d| {
            let parts: Vec<Json> = serde_json::from_slice(&B64.decode(d).unwrap()).unwrap();
            parts[0].as_str().unwrap().to_owned()
        })
        .collect();
    assert!(salts.iter().all(|salt| B64.decode(salt).unwrap().len() == 16));
    let count = salts.len();
    salts.sort();
    salts.dedup();
    assert_eq!(salts.len(), count);
}

/// The attack: disclosures that hold each other as deep as there may be disclosures. A stack that ends takes the process with it.
#[test]
fn disclosures_within_each_other_end_at_a_bound() {
    let nested = |depth: usize| {
        let (mut value, mut disclosures) = (json!(1), Vec::new());
        for number in 0..depth {
            let disclosure = B64.encode(json!([format!("{number:022}"), "a", value]).to_string());
            value = json!({"_sd": [B64.encode(Sha256::digest(&disclosure))]});
            disclosures.push(disclosure);
        }
        (value, disclosures)
    };
    let revealed = |depth: usize, misplaced: bool| {
        let (mut payload, mut disclosures) = nested(depth);
        if misplaced {
            // An element where a member is asked for: what ends the look at the depth must end the rest, too.
            let element = B64.encode(json!([format!("{:022}", 0), 1]).to_string());
            payload["_sd"].as_array_mut().unwrap().insert(0, json!(B64.encode(Sha256::digest(&element))));
            disclosures.push(element);
        }
        let reveal = move || reveal(&payload, &disclosures).map(drop);
        std::thread::Builder::new().stack_size(1 << 20).spawn(reveal).unwrap().join().unwrap()
    };
    assert_eq!(revealed(100, false), Ok(()));
    assert_eq!(revealed(4_095, false), Err(SdJwtError::TooDeep));
    assert!(matches!(revealed(4_095, true), Err(SdJwtError::Disclosures(_))));
}
