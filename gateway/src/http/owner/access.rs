//! Access across gateways: the inbox, what was asked of others, the grants that came, and the letters that wait.

use crate::api::Done;
use crate::api::access::{
    AddReceived, ApproveAsk, AskAgain, CheckReceived, DeclineAsk, DelegateReceived, ListAsked, ListAsks,
    ListLetters, ListReceived, NoteAnswer, RemoveReceived, RequestAccess, ShowAsk, ShowAsked, ShowReceived,
    WithdrawAsked,
};
use crate::http::door::{Answer, Call};
use crate::service::{Asks, Letters, Wallet};

pub(in crate::http) async fn list_asks(call: Call<ListAsks>) -> Answer<ListAsks> {
    Asks(&call.gateway).list(&call.owner)
}

pub(in crate::http) async fn show_ask(call: Call<ShowAsk>) -> Answer<ShowAsk> {
    Asks(&call.gateway).show(&call.owner, call.place)
}

pub(in crate::http) async fn approve(call: Call<ApproveAsk>) -> Answer<ApproveAsk> {
    Asks(&call.gateway).approve(&call.owner, call.place, call.body).await
}

pub(in crate::http) async fn decline(call: Call<DeclineAsk>) -> Answer<DeclineAsk> {
    Asks(&call.gateway).decline(&call.owner, call.place, call.body.word).await
}

pub(in crate::http) async fn list_asked(call: Call<ListAsked>) -> Answer<ListAsked> {
    Wallet(&call.gateway).all_asked(&call.owner)
}

pub(in crate::http) async fn request(call: Call<RequestAccess>) -> Answer<RequestAccess> {
    Wallet(&call.gateway).request(&call.owner, call.body).await
}

pub(in crate::http) async fn show_asked(call: Call<ShowAsked>) -> Answer<ShowAsked> {
    Wallet(&call.gateway).asked(&call.owner, call.place)
}

pub(in crate::http) async fn again(call: Call<AskAgain>) -> Answer<AskAgain> {
    Wallet(&call.gateway).ask_again(&call.owner, call.place).await
}

pub(in crate::http) async fn withdraw(call: Call<WithdrawAsked>) -> Answer<WithdrawAsked> {
    Wallet(&call.gateway).withdraw(&call.owner, call.place).await
}

pub(in crate::http) async fn list_received(call: Call<ListReceived>) -> Answer<ListReceived> {
    Wallet(&call.gateway).received(&call.owner)
}

pub(in crate::http) async fn add_received(call: Call<AddReceived>) -> Answer<AddReceived> {
    Wallet(&call.gateway).add(&call.owner, call.body.grant, call.body.chain).await
}

pub(in crate::http) async fn delegate_received(call: Call<DelegateReceived>) -> Answer<DelegateReceived> {
    Wallet(&call.gateway).delegate(&call.owner, call.place, call.body).await
}

pub(in crate::http) async fn show_received(call: Call<ShowReceived>) -> Answer<ShowReceived> {
    Wallet(&call.gateway).show(&call.owner, call.place)
}

pub(in crate::http) async fn check_received(call: Call<CheckReceived>) -> Answer<CheckReceived> {
    Wallet(&call.gateway).check(&call.owner, call.place).await
}

pub(in crate::http) async fn note_answer(call: Call<NoteAnswer>) -> Answer<NoteAnswer> {
    Wallet(&call.gateway).note_answer(&call.owner, call.place, call.body).await.map(|()| Done {})
}

pub(in crate::http) async fn remove_received(call: Call<RemoveReceived>) -> Answer<RemoveReceived> {
    Wallet(&call.gateway).remove(&call.owner, call.place).await.map(|()| Done {})
}

pub(in crate::http) async fn list_letters(call: Call<ListLetters>) -> Answer<ListLetters> {
    Letters(&call.gateway).list(&call.owner)
}
