//! Pushes to gateways that misbehave: nothing but a signed reply to this very push acknowledges it, who cannot be found is sent nothing, and
//! nobody else's push waits for them.

use super::*;
use oap_gateway::service::Subscriptions;
use oap_identity::SubscriptionId;

/// A peer that has subscribed to everything here; where its pushes go.
async fn subscriber(world: &World, trust: &Trust, number: u8) -> (PlayedPeer, String) {
    let peer = peer(world, trust).await;
    let signer = peer.signer(1);
    let mut draft = world.draft(&signer);
    draft["operations"] = json!(["query", "subscribe"]);
    let grant = world.issue(&draft).await;
    let token = world.token(&signer, &grant).await;
    let id = SubscriptionId::from_bytes([number; 16]);
    let door = format!("{}/{id}", path::PUSH);
    let push = json!({"url": format!("{}{door}", peer.origin)});
    let new = json!({"subscription": id, "window": 60, "push": push});
    world.as_agent(&signer, &token, "POST", path::SUBSCRIBE, Some(&new)).await.ok();
    (peer, door)
}

/// Says of each push what became of it, and signs nothing.
fn unsigned(outcome: &'static str) -> Reply {
    Reply::Made(Arc::new(move |body| {
        let push = strict::parse(body).unwrap();
        let (id, sequence) = (&push["subscription"], &push["sequence"]);
        let said = json!({"subscription": id, "sequence": sequence, "outcome": outcome});
        http("200 OK", "", said.to_string().as_bytes())
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pushes_to_hosts_that_misbehave_are_put_off() {
    let (trust, elsewhere) = (Trust::new(), inside());
    let world = world(&trust).await;
    world.capture(&[note("Tea at four", &["tea"])]).await;
    let other = peer(&world, &trust).await;
    let cases = [
        (false, Reply::Silent, "unreachable"),
        (false, cut_off(), "unreachable"),
        (false, Reply::Endless, "unreachable"),
        (false, onward(&elsewhere), "unreachable"),
        (false, Reply::Bare(deep()), "no_place"),
        (false, Reply::Bare(other.body(path::MEMORY_MANIFEST)), "no_place"),
        (true, Reply::Raw(Vec::new()), "unreachable"),
        (true, Reply::Silent, "unreachable"),
        (true, cut_off(), "unreachable"),
        (true, Reply::Endless, "unreachable"),
        // More than a reply has.
        (true, Reply::Bare(deep()), "unreachable"),
        (true, onward(&elsewhere), "no_reply"),
        (true, unsigned("taken"), "no_reply"),
        (true, unsigned("over"), "no_reply"),
    ];
    let mut peers = Vec::new();
    for (number, (at_door, reply, failure)) in cases.into_iter().enumerate() {
        let (peer, door) = subscriber(&world, &trust, u8::try_from(number).unwrap() + 1).await;
        peer.reply(if at_door { &door } else { path::MEMORY_MANIFEST }, reply);
        peer.asked();
        peers.push((peer, door, at_door, failure));
    }
    world.clock.advance(Duration::from_secs(60));
    let pushed = Subscriptions(&world.gateway).push_due();
    let pushed = tokio::time::timeout(Duration::from_secs(120), pushed).await.expect("it hangs").unwrap();
    assert_eq!(pushed, peers.len());
    nobody_came(&elsewhere);
    let given = get(&world, "subscriptions").await["given"].clone();
    for (number, (peer, door, at_door, failure)) in peers.iter().enumerate() {
        let row = given.as_array().unwrap().iter().find(|row| row["grantee"] == peer.did.as_str()).unwrap();
        // Who cannot be found is shown nothing; whoever was sent it may have it.
        let expected = (&json!(failure), &json!(u8::from(*at_door)));
        assert_eq!((&row["failure"], &row["sequence"]), expected, "{number}");
        assert!(row["acknowledged_at"].is_null() && row["ended_by"].is_null(), "{number}: {row}");
        assert_eq!(peer.asked().iter().any(|asked| asked.path == *door), *at_door, "{number}");
    }
    world.chains_hold().await;
}
