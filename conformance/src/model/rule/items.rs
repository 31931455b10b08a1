//! Rules of which items a grant reaches, and of what is shown of them.

use super::closed;

closed! {
    /// A member of a filter whose value is a list (protocol section 5).
    List {
        Scopes = "scopes",
        SubjectEntityIds = "subject_entity_ids",
        Kinds = "kinds",
        LabelsAny = "labels_any",
        LabelsAll = "labels_all",
        ExcludeLabels = "exclude_labels",
        Sensitivities = "sensitivities",
    }
}

closed! {
    /// What a list of a filter says of an item.
    ListCase {
        Absent = "absent: does not restrict",
        Empty = "empty",
        OneHit = "of one element, which the item has",
        OneMiss = "of one element, which the item lacks",
        ManyFirst = "of many elements, of which the item has the first and not all others",
        ManyLater = "of many elements, of which the item has a later one and not the first",
        ManyAll = "of many elements, all of which the item has",
        ManyMiss = "of many elements, none of which the item has",
        Without = "not empty, and the item has no such member",
    }
}

impl List {
    /// The cases that can be: an item has one scope, kind and sensitivity, and always has them.
    #[must_use]
    pub fn cases(self) -> Vec<ListCase> {
        let one = matches!(self, Self::Scopes | Self::Kinds | Self::Sensitivities | Self::SubjectEntityIds);
        let always = matches!(self, Self::Scopes | Self::Kinds | Self::Sensitivities);
        let can = |case: &ListCase| match case {
            ListCase::ManyAll => !one,
            ListCase::Without => !always,
            _ => true,
        };
        ListCase::ALL.iter().copied().filter(can).collect()
    }
}

closed! {
    /// A member of a filter whose value is a bound.
    Bound {
        CapturedAfter = "captured_after",
        CapturedBefore = "captured_before",
        MinConfidence = "min_confidence",
    }
}

closed! {
    /// Where an item stands to a bound of a filter.
    BoundCase {
        Absent = "absent: does not restrict",
        JustBelow = "the item is below it, by the least step or little more",
        Below = "the item is below it",
        At = "the item is at it",
        JustAbove = "the item is above it, by the least step or little more",
        Above = "the item is above it",
    }
}

/// A member of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Field {
    List(List),
    Bound(Bound),
}

impl Field {
    /// Every one.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        let bounds = Bound::ALL.iter().copied().map(Self::Bound);
        List::ALL.iter().copied().map(Self::List).chain(bounds)
    }
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::List(list) => write!(f, "{list}"),
            Self::Bound(bound) => write!(f, "{bound}"),
        }
    }
}

closed! {
    /// What else decides whether a grant reaches an item (protocol section 5, "Never admitted").
    Reach {
        Admitted = "everything lets it through",
        RestrictedUnnamed = "restricted, and sensitivities is absent: not admitted",
        RestrictedNamed = "restricted, and sensitivities names it: admitted",
        NotExportable = "exportable is false, to another than the owner: not admitted",
        NotExportableToOwner = "exportable is false, to the owner: admitted",
        DefaultScope = "without scopes, of the scope of the granter: admitted",
        OtherScope = "without scopes, of another scope: not admitted",
        AboveRefuses = "the filter of a grant above does not admit it",
    }
}

closed! {
    /// What a gate says of an item (protocol section 7).
    Gate {
        Bridge = "of another scope, over a bridge: passes",
        NoBridge = "of another scope, without a bridge: does not pass",
        BridgeEnded = "of another scope, over a bridge that has ended: does not pass",
        BridgeOfOthers = "of another scope, over a bridge for other labels and kinds: does not pass",
        Privileged = "of a privileged scope, over a bridge: does not pass",
        Cleared = "over a bridge, with labels that the grant's scope is cleared for: passes",
        NotCleared = "over a bridge, with a label that the grant's scope is not cleared for: does not pass",
        Wall = "a wall between the item's scope and the grant's or its grantee: does not pass",
        Embargo = "a grantee under embargo: does not pass",
        Nda = "an NDA with another: does not pass",
        NdaParty = "an NDA with the grantee: passes",
        NdaNotHere = "an NDA that has ended, has not begun or is of the other side: passes",
        NonCompete = "a non-compete, without consent: does not pass",
        NonSolicit = "a non-solicitation, without consent: does not pass",
        ProfessionalCode = "a professional code, without consent: does not pass",
        FiduciaryDuty = "a fiduciary duty, without consent: does not pass",
        Insider = "inside knowledge, without consent: does not pass",
        Privilege = "a privilege or trade secret, without consent: does not pass",
        Consented = "what needs consent, with consent to this grant: passes",
        Health = "health, where what is shown identifies somebody: does not pass",
        HealthAnonymous = "health, where what is shown identifies nobody: passes",
        StateSecret = "a state secret: does not pass",
        MissingList = "a sanctions list that is not there: does not pass",
        Sanctioned = "a grantee on a sanctions list: does not pass",
        ExportControl = "export control: does not pass",
    }
}

closed! {
    /// What an item's chain and time say of it (protocol sections 4 and 4.2).
    Standing {
        Current = "captured and current: in the view",
        Corrected = "corrected: the new version is in the view, and the old one in none",
        CorrectedInto = "corrected: in a view that it was not in",
        CorrectedOutOf = "corrected: in a view no more that it was in",
        Relabelled = "relabelled: its new labels count",
        Confirmed = "confirmed: the version stays",
        Retracted = "retracted: in no view",
        Restored = "restored: in the view again",
        Erased = "deleted: in no view",
        DerivedErased = "made from a deleted item: in no view",
        BeforeEnd = "before its expires_at: in the view",
        LastBeforeEnd = "a millisecond before its expires_at: in the view",
        AtEnd = "at its expires_at: in no view",
        FirstAfterEnd = "a millisecond after its expires_at: in no view",
        AfterEnd = "after its expires_at: in no view",
        BeforeTtl = "before captured_at + ttl_days: in the view",
        LastBeforeTtl = "a millisecond before captured_at + ttl_days: in the view",
        AtTtl = "at captured_at + ttl_days: in no view",
        FirstAfterTtl = "a millisecond after captured_at + ttl_days: in no view",
        AfterTtl = "after captured_at + ttl_days: in no view",
        EndOutranksTtl = "expires_at outranks ttl_days",
    }
}

closed! {
    /// What a correction changed, where a grantee sees it: what is shown of the item is another than before, or whether it is shown.
    Corrected {
        Content = "content",
        Kind = "kind",
        Labels = "labels",
        Subject = "subject_entity_id",
        Sensitivity = "sensitivity",
        Confidence = "provenance.confidence",
        CapturedAt = "provenance.captured_at",
        End = "expires_at or ttl_days",
        Exportable = "exportable",
        Extensions = "extensions",
        Embedding = "embedding",
    }
}

impl Corrected {
    /// The members that it stands for.
    pub(in super::super) const fn pointers(self) -> &'static [&'static str] {
        match self {
            Self::Content => &["/content"],
            Self::Kind => &["/kind"],
            Self::Labels => &["/labels"],
            Self::Subject => &["/subject_entity_id"],
            Self::Sensitivity => &["/sensitivity"],
            Self::Confidence => &["/provenance/confidence"],
            Self::CapturedAt => &["/provenance/captured_at"],
            Self::End => &["/expires_at", "/ttl_days"],
            Self::Exportable => &["/exportable"],
            Self::Extensions => &["/extensions"],
            Self::Embedding => &["/embedding"],
        }
    }
}

closed! {
    /// A default that is written out where the writer is silent (protocol section 4), or a form that is brought about.
    Written {
        DefaultScope = "scope_id: the default scope",
        DefaultConfidence = "provenance.confidence: 1",
        DefaultCapturedAt = "provenance.captured_at: now",
        DefaultExportable = "exportable: true",
        DefaultSensitivity = "sensitivity: internal",
        LabelsSorted = "labels: sorted, each once",
        TimesToTheMillisecond = "times: to the millisecond",
        ParticipantsCounted = "content.structured.participants_count of a calendar event: counted",
    }
}

closed! {
    /// What a profile says on a condition (protocol section 7).
    Condition {
        TransparencyBusy = "calendar_event: transparency is busy: shown",
        TransparencyOther = "calendar_event: transparency is not busy: hidden",
        TitleShown = "calendar_event: title of an event that is not private: shown",
        TitleVisibilityPrivate = "calendar_event: visibility is private: title hidden",
        TitleVisibilityConfidential = "calendar_event: visibility is confidential: title hidden",
        TitlePrivate = "calendar_event: private is true: title hidden",
        TitleRestricted = "calendar_event: sensitivity is restricted: title hidden",
        ChannelPrimaryEmail = "contact: a channel of type email that is primary: shown from level 2",
        ChannelOtherEmail = "contact: a channel of type email that is not primary: hidden at level 2",
        ChannelOtherPrimary = "contact: a primary channel of another type: hidden at level 2",
        ElementsCloseUp = "an array closes up over hidden elements",
        OtherEntity = "an entity of another type, or none: the table of every other item",
        OwnProfile = "a profile of the owner's own",
        OwnEntity = "a profile of the owner's own, an entity of its type",
        OwnHolds = "a profile of the owner's own, a field whose conditions hold: shown",
        OwnFails = "a profile of the owner's own, a field one of whose conditions does not hold: hidden",
        OwnElements = "a profile of the owner's own, elements of a list",
        SpansJoined = "a text with very many spans: whole stretches of it may be hidden as one, and what must be hidden is",
    }
}

closed! {
    /// A class of spans (protocol section 7).
    SpanClass {
        UrlCredentials = "url_credentials",
        Secret = "secret",
        Iban = "iban",
        Card = "card",
        NationalId = "national_id",
        Email = "email",
        Ip = "ip",
        Phone = "phone",
        DateOfBirth = "date_of_birth",
        StreetAddress = "street_address",
        ThirdParty = "third_party",
    }
}

closed! {
    /// Where a span stands in its text.
    SpanPlace {
        Start = "at the start",
        Middle = "in the middle",
        End = "at the end",
        Whole = "as the whole text",
        BesideSame = "next to another of its class, with nothing but a separator between them",
        BesideOther = "next to one of another class, with nothing but a separator between them",
    }
}

impl SpanPlace {
    /// The places at which a span of a class can stand: a word of birth comes before a date.
    #[must_use]
    pub fn of(class: SpanClass) -> Vec<Self> {
        let announced = |place: &&Self| matches!(place, Self::Start | Self::Whole | Self::BesideSame);
        let can = |place: &&Self| class != SpanClass::DateOfBirth || !announced(place);
        Self::ALL.iter().filter(can).copied().collect()
    }
}
