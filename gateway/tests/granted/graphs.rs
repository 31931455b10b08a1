//! `memory_query` with `sparql` under a grant: a graph of the items of one answer, which is judged, projected, recorded, counted and paid for
//! as any other, and of nothing else.

use super::*;
use oap_memory::evidence;
use std::collections::BTreeSet;

/// What there is to ask of what is hidden.
pub(crate) const CURIOUS: [&str; 8] = [
    FACTS,
    "SELECT ?s ?p ?o WHERE { ?s ?p ?o } ORDER BY ?s ?p ?o",
    "SELECT ?what ?topic WHERE { ?fact brain:content ?what OPTIONAL { ?fact brain:topic/rdfs:label ?topic } } ORDER BY ?what ?topic",
    "SELECT (COUNT(?fact) AS ?n) WHERE { ?fact brain:content ?what FILTER(REGEX(?what, \"gin|secret|budget\", \"i\")) }",
    "SELECT (COUNT(*) AS ?n) WHERE { ?a (!rel:none)+ ?b }",
    "SELECT ?what WHERE { ?fact brain:content ?what MINUS { ?fact oap:label \"b\" } } ORDER BY ?what",
    OF_OTHERS,
    "SELECT (SUM(STRLEN(STR(?o))) AS ?n) (COUNT(DISTINCT ?g) AS ?m) WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }",
];

const FACTS: &str = "SELECT (COUNT(?fact) AS ?n) WHERE { ?fact a brain:Fact }";
const CONTENTS: &str = "SELECT ?what WHERE { ?fact a brain:Fact ; brain:content ?what } ORDER BY ?what";
/// What agents of the owner's are told of, and no item of an answer says.
const OF_OTHERS: &str = "ASK { { GRAPH <urn:oap:brain:history> { ?s ?p ?o } } UNION { ?link a brain:Link } UNION { ?s brain:scope ?o } \
    UNION { ?s brain:humanVerified ?o } UNION { ?s prov:wasAttributedTo ?who } }";

/// The values of each row, in the order of the variables; what is not bound is `-`.
#[track_caller]
fn rows(told: &Value) -> Vec<Vec<String>> {
    let found = &told["sparql"]["found"];
    let names: Vec<&str> =
        found["head"]["vars"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let value = |row: &Value, name: &str| row[name]["value"].as_str().unwrap_or("-").to_owned();
    let bindings = found["results"]["bindings"].as_array().unwrap().iter();
    bindings.map(|row| names.iter().map(|name| value(row, name)).collect()).collect()
}

/// Makes what a SPARQL query found a text, of which nothing is masked: not even a member `value`.
pub(crate) fn as_text(body: &mut Value) {
    if let Some(found) = body.pointer_mut("/result/structuredContent/sparql") {
        *found = json!(found.to_string());
    }
}

/// How many items the graph was made of, and whether there were more.
fn of(told: &Value) -> (u64, bool) {
    (told["sparql"]["items"].as_u64().unwrap(), told["sparql"]["truncated"].as_bool().unwrap())
}

/// What a refused call says, and its code.
#[track_caller]
fn refusal(answer: &Answer) -> (String, String) {
    let result = &answer.body["result"];
    assert_eq!(result["isError"], true, "{}", answer.body);
    let said = |value: &Value| value.as_str().unwrap().to_owned();
    (said(&result["content"][0]["text"]), said(&result["_meta"]["dev.oap-memory/code"]))
}

#[tokio::test]
async fn rows_are_of_the_items_of_one_answer() {
    let world = World::new().await;
    let shown =
        [note("tea is green", &["a", "topic:tea"]), note("tea in Lisbon", &["a"]), note("cups", &["a"])];
    let shown = world.capture(&shown).await;
    world.capture(&[note("tea is secret", &["b", "topic:secrets"])]).await;
    let grantee = agent(2);
    let (_, token) = granted(&world, &grantee, "a", json!({})).await;
    let asks =
        async |arguments: Value| told(calls(&world, &grantee, &token, "memory_query", arguments).await);

    let tools = says(&world, &grantee, &token, "tools/list", json!({})).await.ok();
    let listed = &tools["result"]["tools"][1];
    let answer = calls(&world, &grantee, &token, "memory_query", json!({"sparql": FACTS})).await;
    let text = answer.body["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!((text.matches("<memory-item ").count(), text.contains("tea")), (1, false), "{text}");
    let mut found = told(answer);
    assert!(listed["name"] == "memory_query" && jsonschema::is_valid(&listed["outputSchema"], &found));
    assert_eq!((rows(&found), of(&found)), (vec![vec!["3".to_owned()]], (3, false)));

    // But for the rows it is the answer of a query, with its receipt and its signature.
    found.as_object_mut().unwrap().remove("sparql");
    evidence::answer(&found, &world.document()).unwrap();
    let mut plain = world.query(&grantee, &token, &json!({"max_results": 100})).await.ok();
    for answer in [&mut found, &mut plain] {
        mask(answer);
        answer["request_id"] = json!("");
        // The request's own name is in it.
        blank(&mut answer["receipt"]["input_hash"]);
    }
    assert_eq!(found, plain);
    assert_eq!(queries(&world, &grantee).await.len(), 2);

    // What the answer has is in the graph, and nothing that it does not have.
    let topics = "SELECT ?topic WHERE { ?fact brain:topic/rdfs:label ?topic }";
    assert_eq!(rows(&asks(json!({"sparql": topics})).await), [["tea"]]);
    let item = "SELECT ?fact WHERE { ?fact brain:content \"cups\" }";
    assert_eq!(rows(&asks(json!({"sparql": item})).await), [[format!("urn:oap:item:{}", shown[2])]]);
    let others = asks(json!({"sparql": OF_OTHERS})).await;
    assert_eq!((&others["sparql"]["found"]["boolean"], of(&others)), (&json!(false), (3, false)));
    for curious in CURIOUS {
        let found = asks(json!({"sparql": curious})).await;
        assert!(!found.to_string().contains("secret"), "{curious}: {found}");
    }

    // The members of a query say what is in the answer.
    let words = asks(json!({"sparql": CONTENTS, "query": "tea"})).await;
    assert_eq!(
        (rows(&words), of(&words).0),
        (vec![vec!["tea in Lisbon".into()], vec!["tea is green".into()]], 2)
    );
    for nothing in
        [json!({"labels_any": ["b"]}), json!({"kinds": ["preference"]}), json!({"query": "secret"})]
    {
        let mut arguments = nothing.clone();
        arguments["sparql"] = json!(FACTS);
        let found = asks(arguments).await;
        assert_eq!((rows(&found), of(&found)), (vec![vec!["0".to_owned()]], (0, false)), "{nothing}");
    }
    // Each page is a graph of its own, and each receipt names its items.
    let first = asks(json!({"sparql": CONTENTS, "max_results": 2})).await;
    let cursor = json!({"sparql": CONTENTS, "max_results": 2, "cursor": first["next_cursor"]});
    let second = asks(cursor).await;
    assert_eq!((of(&first), of(&second)), ((2, true), (1, false)));
    let mut both = [rows(&first), rows(&second)].concat().concat();
    both.sort();
    assert_eq!(both, ["cups", "tea in Lisbon", "tea is green"]);
    for page in [&first, &second] {
        let tags = page["receipt"]["provenance_tags_out"].as_array().unwrap().iter();
        let named = tags.map(|tag| tag.as_str().unwrap().split('@').next().unwrap().to_owned());
        let shown: BTreeSet<String> = ids(page).into_iter().collect();
        assert_eq!(named.collect::<BTreeSet<String>>(), shown);
    }
    world.chains_hold().await;
}

#[tokio::test]
async fn what_a_level_hides_is_in_no_triple() {
    let world = World::new().await;
    let text = "Write to quentin@own.example password: Xk29QmLs7Rta";
    let mut item = note(text, &["a", "topic:mail"]);
    item["provenance"] = json!({"captured_at": "2026-04-01T00:00:00Z", "confidence": 0.5});
    world.capture(&[item]).await;
    let grantee = agent(2);
    let mut expected = BTreeSet::from(["type", "version", "generatedAtTime", "wasGeneratedBy"]);
    for (level, more, mail, password) in [
        (0, vec![], false, false),
        (1, vec!["label", "topic"], false, false),
        (2, vec!["content"], false, false),
        (3, vec![], true, false),
        (4, vec!["confidence"], true, true),
    ] {
        expected.extend(more);
        let (_, token) = granted(&world, &grantee, "a", json!({"trust_level": level})).await;
        let asks = async |sparql: &str| {
            told(calls(&world, &grantee, &token, "memory_query", json!({"sparql": sparql})).await)
        };
        let found = rows(&asks("SELECT DISTINCT ?p WHERE { ?s ?p ?o }").await).concat();
        let names: BTreeSet<&str> = found.iter().map(|iri| iri.rsplit('#').next().unwrap()).collect();
        assert_eq!(names, expected, "{level}");
        let has = async |words: &str| {
            let anywhere = format!(
                "ASK {{ {{ ?s ?p ?o }} UNION {{ GRAPH ?o {{ ?s ?p ?x }} }} FILTER(CONTAINS(STR(?o), \"{words}\")) }}"
            );
            asks(&anywhere).await["sparql"]["found"]["boolean"].as_bool().unwrap()
        };
        assert_eq!((has("quentin").await, has("Xk29QmLs7Rta").await), (mail, password), "{level}");
    }
}

#[tokio::test]
async fn a_text_that_is_refused_discloses_nothing() {
    let world = World::new().await;
    world.capture(&[note("tea", &["a"])]).await;
    let grantee = agent(2);
    let (_, token) = granted(&world, &grantee, "a", json!({"budget": {"queries": 1}})).await;
    let asks = async |arguments: Value| calls(&world, &grantee, &token, "memory_query", arguments).await;
    let (long, deep) = (format!("ASK {{}}{}", " ".repeat(16 << 10)), "(".repeat(100));
    for (sparql, said) in [
        ("ASK { ?canary", "SPARQL 1.1"),
        ("INSERT DATA { <urn:canary> <urn:p> 1 }", "update"),
        ("SELECT * { SERVICE <https://canary.example/> { ?s ?p ?o } }", "SERVICE"),
        ("ASK FROM <https://canary.example/> {}", "FROM"),
        ("ASK FROM NAMED <https://canary.example/> {}", "FROM"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "SELECT"),
        ("DESCRIBE <urn:canary>", "SELECT"),
        ("SELECT (<urn:canary>(1) AS ?x) {}", "function"),
        ("SELECT (xsd:canary(1) AS ?x) {}", "function"),
        ("SELECT (xsd:integer(1, 2) AS ?x) {}", "function"),
        ("ASK { FILTER(RAND() > 0) }", "RAND"),
        (deep.as_str(), "brackets"),
        (long.as_str(), "sparql"),
        (" ", "sparql"),
    ] {
        let (message, code) = refusal(&asks(json!({"sparql": sparql})).await);
        assert!(message.contains(said) && !message.contains("canary"), "{sparql}: {message}");
        assert_eq!(code, "invalid_input", "{sparql}");
    }
    for (arguments, field) in [
        (json!({"query": "tea"}), "query"),
        (json!({"sparql": "ASK {}", "max_results": 0}), "max_results"),
        (json!({"sparql": "ASK {}", "as_of": "2026-01-01T00:00:00Z"}), "as_of"),
        (json!({"sparql": "ASK {}", "include_embeddings": true}), "include_embeddings"),
    ] {
        let (message, _) = refusal(&asks(arguments).await);
        assert!(message.contains(field), "{message}");
    }
    assert_eq!(queries(&world, &grantee).await.len(), 0);
    // The one answer that the budget allows is there still, and is the last one.
    assert_eq!(rows(&told(asks(json!({"sparql": FACTS})).await)), [["1"]]);
    assert_eq!(refusal(&asks(json!({"sparql": FACTS})).await).1, "budget_exhausted");
    // Where grants are not for queries, or are over, nothing is answered in SPARQL either.
    let (grant, ended) = granted(&world, &grantee, "a", json!({})).await;
    let path = format!("/oap/owner/grants/{}/revoke", grant["grant_id"].as_str().unwrap());
    world.owner("POST", &path, Some(&json!({}))).await.ok();
    let over = calls(&world, &grantee, &ended, "memory_query", json!({"sparql": FACTS})).await;
    assert_eq!(refusal(&over).1, "policy_block");
}

/// The answer that the graph was made of was recorded and counted before the query was evaluated.
#[tokio::test]
async fn a_query_without_an_end_has_its_receipt() {
    let world = World::new().await;
    let notes: Vec<Value> = (0..20).map(|number| note(&format!("tea {number}"), &["a"])).collect();
    world.capture(&notes).await;
    let grantee = agent(2);
    let (_, token) = granted(&world, &grantee, "a", json!({"budget": {"queries": 1}})).await;
    let endless = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }";
    let asked = calls(&world, &grantee, &token, "memory_query", json!({"sparql": endless})).await;
    let (message, code) = refusal(&asked);
    assert!(message.contains("ask for less") && message.contains("count as disclosed"), "{message}");
    assert_eq!(code, "invalid_input");
    let receipts = queries(&world, &grantee).await;
    assert_eq!(receipts.len(), 1);
    assert!(message.ends_with(receipts[0]["receipt_id"].as_str().unwrap()), "{message}");
    assert_eq!(receipts[0]["provenance_tags_out"].as_array().unwrap().len(), 20);
    let spent = calls(&world, &grantee, &token, "memory_query", json!({"sparql": FACTS})).await;
    assert_eq!(refusal(&spent).1, "budget_exhausted");
    world.chains_hold().await;
}

/// However it is asked: what the grant may not show any more is in no graph, and no number tells of it.
#[tokio::test]
async fn no_query_counts_more_than_the_grant_shows() {
    let world = World::new().await;
    let colours = ["green", "black", "white", "red", "blue"];
    world.capture(&colours.map(|colour| note(&format!("tea {colour}"), &["a"]))).await;
    let grantee = agent(2);
    let (_, token) = granted(&world, &grantee, "a", json!({"max_items": 2})).await;
    let asks =
        async |arguments: Value| told(calls(&world, &grantee, &token, "memory_query", arguments).await);
    let mut seen = BTreeSet::new();
    for colour in colours {
        let found = asks(json!({"sparql": CONTENTS, "query": colour})).await;
        assert!(!of(&found).1, "{found}");
        seen.extend(rows(&found).concat());
    }
    assert_eq!(seen, BTreeSet::from(["tea black".to_owned(), "tea green".to_owned()]));
    let all = asks(json!({"sparql": FACTS})).await;
    assert_eq!((rows(&all), of(&all)), (vec![vec!["2".to_owned()]], (2, false)));
}

/// What depends on the time depends on that of the receipt: the rows follow from the answer.
#[tokio::test]
async fn now_is_the_time_of_the_receipt() {
    let world = World::new().await;
    let grantee = agent(2);
    let (_, token) = granted(&world, &grantee, "a", json!({})).await;
    let now = json!({"sparql": "SELECT (NOW() AS ?now) {}"});
    let found = told(calls(&world, &grantee, &token, "memory_query", now).await);
    assert_eq!(rows(&found), [[found["receipt"]["timestamp"].as_str().unwrap()]]);
}
