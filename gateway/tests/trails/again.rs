//! An agent does not keep its own conclusion alive by saying it again (docs/soundness.md).

use super::*;

async fn says(world: &World, agent: &str, arguments: Value) -> Value {
    world.clock.advance(Duration::from_millis(1));
    told(world, agent, "memory_learn", arguments).await
}

/// How sure an item is to an agent that lists everything; none where it is not told.
async fn sure(world: &World, agent: &str, item: &Value) -> Option<f64> {
    let listed = told(world, agent, "memory_query", json!({"limit": 100})).await;
    facts(&listed).iter().find(|fact| fact["item_id"] == *item)?["confidence"].as_f64()
}

#[tokio::test]
async fn a_conclusion_that_is_repeated_is_believed_as_since_it_was_first_said() {
    let world = agents(Config::default()).await;
    let first = says(&world, "scout", json!({"content": "The lake is deep"})).await;
    assert_eq!((first.get("said_before"), &first["confidence"]), (None, &json!(0.6)));
    // Every day, in other letters: it is never surer than the first one.
    for day in 1..=6_u32 {
        world.clock.advance(DAY);
        let again = says(&world, "scout", json!({"content": "the LAKE is  deep!"})).await;
        let left = f64::from(60 - 5 * day) / 100.0;
        assert_eq!(again["confidence"].as_f64(), Some(left), "day {day}: {again}");
        assert!(again["said_before"].is_string(), "{again}");
        assert_eq!(sure(&world, "chief", &again["item_id"]).await, Some(left), "day {day}");
        assert_eq!(sure(&world, "chief", &first["item_id"]).await, Some(left), "day {day}");
    }
    world.clock.advance(DAY);
    // At a quarter nobody is given any of them, and to say it once more brings none back.
    let last = says(&world, "scout", json!({"content": "The lake is deep."})).await;
    assert_eq!(last["confidence"], 0.25, "{last}");
    let asked = json!({"query": "deep lake"});
    let recalled = told(&world, "chief", "memory_recall", asked.clone()).await;
    assert_eq!(recalled["matched"], 0, "{recalled}");
    // The opposite is something else, and another agent's word is its own.
    let denied = says(&world, "scout", json!({"content": "The lake is not deep"})).await;
    let others = says(&world, "editor", json!({"content": "The lake is deep"})).await;
    for said in [denied, others] {
        assert_eq!((said.get("said_before"), &said["confidence"]), (None, &json!(0.6)), "{said}");
    }
    world.chains_hold().await;
}

#[tokio::test]
async fn another_source_renews_a_conclusion_once() {
    let world = agents(Config::default()).await;
    let said = |source: Option<&str>| {
        let mut learn = json!({"content": "The lake is deep"});
        if let Some(reference) = source {
            learn["source"] = json!({"type": "web", "ref": reference});
        }
        learn
    };
    says(&world, "scout", said(None)).await;
    world.clock.advance(DAY * 3);
    let map = says(&world, "scout", said(Some("map"))).await;
    assert_eq!((map.get("said_before"), &map["confidence"]), (None, &json!(0.6)), "{map}");
    world.clock.advance(DAY * 2);
    for source in [Some("map"), None] {
        let again = says(&world, "scout", said(source)).await;
        assert_eq!(
            (&again["said_before"].is_string(), &again["confidence"]),
            (&true, &json!(0.5)),
            "{again}"
        );
    }
    // What a tool found is no conclusion: it does not decay, and is not compared.
    let mut found = said(None);
    found["level"] = json!("tool_verified");
    let found = says(&world, "scout", found).await;
    assert_eq!((found.get("said_before"), &found["confidence"]), (None, &json!(0.9)), "{found}");
}

/// Taken back and said again, corrected to itself, and by way of other words: none of it begins anew.
#[tokio::test]
async fn no_detour_renews_a_conclusion() {
    let world = agents(Config::default()).await;
    let tea = says(&world, "scout", json!({"content": "Tea is hot"})).await["item_id"].clone();
    let soup = says(&world, "scout", json!({"content": "Soup is hot"})).await["item_id"].clone();
    world.clock.advance(DAY * 3);
    told(&world, "scout", "memory_forget", json!({"item_id": soup})).await;
    let again = says(&world, "scout", json!({"content": "Soup is hot"})).await;
    assert_eq!((&again["said_before"], &again["confidence"]), (&soup, &json!(0.45)), "{again}");
    let correct = async |content: &str| {
        world.clock.advance(Duration::from_millis(1));
        told(&world, "scout", "memory_correct", json!({"item_id": tea, "content": content})).await
    };
    let same = correct("Tea is hot!").await;
    assert_eq!((&same["said_before"], &same["confidence"]), (&json!(true), &json!(0.45)), "{same}");
    assert_eq!(sure(&world, "chief", &tea).await, Some(0.45));
    let other = correct("Tea is cold").await;
    assert_eq!((other.get("said_before"), &other["confidence"]), (None, &json!(0.6)), "{other}");
    let back = correct("Tea is hot").await;
    assert_eq!((&back["said_before"], &back["confidence"]), (&json!(true), &json!(0.45)), "{back}");
    assert_eq!(sure(&world, "chief", &tea).await, Some(0.45));
    // One that has an end is told until then, and no surer for it.
    let ends = says(&world, "scout", json!({"content": "Tea is hot", "ttl_days": 1})).await;
    assert_eq!(sure(&world, "chief", &ends["item_id"]).await, Some(0.45));
    world.clock.advance(HOUR * 23);
    assert!(sure(&world, "chief", &ends["item_id"]).await.is_some());
    world.clock.advance(HOUR * 2);
    assert!(sure(&world, "chief", &ends["item_id"]).await.is_none());
    // What the owner confirms is the owner's to believe.
    let confirm = format!("/oap/owner/items/{}/confirm", tea.as_str().unwrap());
    world.owner("POST", &confirm, Some(&json!({"version": 4}))).await.ok();
    assert_eq!(sure(&world, "chief", &tea).await, Some(0.6));
}

/// What the process has in memory of it is found again when it starts anew.
#[tokio::test]
async fn a_new_process_knows_what_was_concluded() {
    let (kept, world) = Kept::new().await;
    let new = json!({"name": "scout", "permission": "memory.write"});
    world.owner("POST", "/oap/owner/agents", Some(&new)).await.ok();
    let first = says(&world, "scout", json!({"content": "The lake is deep"})).await["item_id"].clone();
    let later = world.now().plus(DAY * 3);
    drop(world);
    let world = kept.open_at(later).await;
    let again = says(&world, "scout", json!({"content": "The lake is deep"})).await;
    assert_eq!((&again["said_before"], &again["confidence"]), (&first, &json!(0.45)), "{again}");
}

/// A call that is repeated by its key is answered as it was, whatever is usual by then.
#[tokio::test]
async fn a_repeated_call_is_no_conclusion_said_again() {
    let world = agents(Config::default()).await;
    let call = json!({"content": "The lake is deep", "idempotency_key": "k"});
    let first = says(&world, "scout", call.clone()).await;
    world.clock.advance(DAY * 3);
    let again = says(&world, "scout", call).await;
    assert_eq!((&again["item_id"], &again["repeated"]), (&first["item_id"], &json!(true)), "{again}");
    assert_eq!(again.get("said_before"), None, "{again}");
}
