//! Cues: phrases of four languages that mean the same to the rules, found in one pass over a text.
//!
//! Phrases are written in the common form (see `fold`). One that ends with `*` stands for every word that begins so.

use aho_corasick::AhoCorasick;
use std::ops::Range;
use std::sync::LazyLock;

/// Most cues of one text that are looked at. What comes after them is not judged: the text counts as too dense to be judged.
pub const MAX_CUES: usize = 16_384;

macro_rules! cues {
    ($($(#[$doc:meta])* $cue:ident: $($phrase:literal)+;)+) => {
        /// What a phrase means to the rules.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(super) enum Cue { $($(#[$doc])* $cue),+ }

        const PHRASES: &[(Cue, &[&str])] = &[$((Cue::$cue, &[$($phrase),+])),+];
    };
}

cues! {
    /// To take no notice of something.
    Override:
        "ignore" "ignoring" "disregard" "disregarding" "forget" "override" "overrule" "bypass" "discard" "set aside" "pay no attention to"
        "do not follow" "don't follow" "do not obey" "don't obey" "stop following" "stop obeying" "no longer follow" "abandon"
        "ignoriere" "ignorieren" "ignoriert" "vergiss" "vergesst" "vergessen sie" "missachte" "missachten" "missachten sie" "befolge nicht"
        "beachte nicht" "beachten sie nicht" "ubergehe" "umgehe" "verwirf" "hore nicht auf"
        "ignora" "ignore" "ignoren" "ignorad" "ignorar" "olvida" "olvide" "olviden" "olvidate de" "haz caso omiso" "haga caso omiso"
        "hagan caso omiso" "no hagas caso" "no haga caso" "no sigas" "no obedezcas" "desobedece" "descarta" "pasa por alto" "omite"
        "ignorez" "oublie" "oubliez" "ne tiens pas compte" "ne tenez pas compte" "fais abstraction" "faites abstraction"
        "ignorate" "dimentica" "dimenticate" "non tenere conto" "esqueca" "desconsidere"
        "忽略" "无视" "忘记" "忘掉" "不要遵守" "不要理会" "不用理会" "不必理会" "抛开" "别管" "跳过" "覆盖" "不再遵守";
    /// Not to forget: the contrary.
    Keep:
        "don't forget" "do not forget" "never forget" "not forget" "vergiss nicht" "vergesst nicht" "vergessen sie nicht" "no olvide" "no olviden"
        "n'oublie pas" "n'oubliez pas" "non dimenticate" "nao esqueca" "不要忘记" "别忘记" "不要忘掉" "别忘掉";
    /// What came before, or is in force.
    Prior:
        "previous" "previously" "prior" "above" "earlier" "preceding" "foregoing" "existing" "original" "initial" "safety" "system" "your" "all"
        "any" "everything" "anything" "former" "past"
        "vorherig*" "vorig*" "obig*" "bisherig*" "fruheren" "vorangegangen*" "vorstehend*" "ursprunglich*" "alle" "alles" "deine" "ihre" "samtliche"
        "precedent*" "anterieur*" "ci-dessus" "toutes" "tes" "vos" "tutte" "tue" "vostre" "suas"
        "anterior*" "previ*" "precedentes" "originales" "de arriba" "todas" "todo" "todos" "tus" "sus"
        "之前" "以前" "先前" "上述" "以上" "上面" "前面" "此前" "所有" "你的" "您的" "原来" "一切" "全部" "已有";
    /// What is to be obeyed.
    Instruction:
        "instruction" "instructions" "rules" "guidelines" "guideline" "directions" "directives" "directive" "prompt" "prompts" "orders" "commands"
        "constraints" "restrictions" "told" "programming" "policies" "safeguards" "system message" "system messages" "training"
        "anweisung" "anweisungen" "regeln" "vorgaben" "richtlinien" "befehle" "instruktion*" "gesagt" "gesagte" "hinweise" "weisungen"
        "consignes" "regles" "istruzioni" "regole" "direttive" "instrucoes" "regras" "diretrizes"
        "instruccion" "instrucciones" "indicacion*" "reglas" "directrices" "ordenes" "normas" "restricciones" "han dicho" "dijeron" "directivas"
        "指令" "指示" "规则" "命令" "说明" "被告知" "提示词" "限制" "约束" "要求" "系统提示";
    /// No longer in force.
    Revoked:
        "no longer valid" "no longer apply" "no longer in force" "are void" "are invalid" "are obsolete" "are superseded" "are cancelled"
        "gelten nicht mehr" "nicht mehr gultig" "sind ungultig" "ausser kraft" "sind aufgehoben"
        "ya no son validas" "ya no valen" "quedan anuladas" "ya no se aplican" "ya no aplican" "quedan sin efecto" "no son validas"
        "已经失效" "已失效" "失效" "不再有效" "作废" "不再适用"
        "no longer applies" "no longer bind" "no longer binding" "do not apply any more" "are revoked" "are withdrawn" "have been revoked"
        "have been withdrawn" "have been superseded" "are lifted" "are suspended" "are no longer needed"
        "gilt nicht mehr" "gelten nicht langer" "sind hinfallig" "sind uberholt" "sind ausser kraft" "wurden aufgehoben" "wurden ersetzt"
        "entfallen" "sind abgelaufen" "dejan de aplicarse" "dejan de valer" "han caducado" "estan obsoletas" "quedan derogadas" "quedan suspendidas"
        "han sido sustituidas" "han sido anuladas" "no estan vigentes" "ya no estan vigentes" "已废止" "已被替换" "已被取代" "无效" "不再生效"
        "停止执行";
    /// To take no notice of something, where the verb stands last or is passive.
    Voided:
        "must be ignored" "should be ignored" "are to be ignored" "shall be ignored" "must be disregarded" "should be disregarded"
        "are to be disregarded" "should be set aside" "must be set aside" "should be forgotten" "are to be forgotten" "ignorieren"
        "ignoriert werden" "missachten" "ausser acht lassen" "ausser acht zu lassen" "nicht befolgen" "nicht mehr befolgen" "nicht beachten"
        "nicht mehr beachten" "zu verwerfen" "ignorarse" "deben ignorar" "ser ignoradas" "descartarse" "no deben seguirse"
        "no hay que seguirlas" "dejarse de lado" "忽略" "无视" "抛开" "抛到" "丢弃" "不予理会" "不用管" "不必遵守" "不用遵守" "当作不存在";
    /// Said of somebody who is not to get to know.
    Unknowing:
        "must not learn" "must never learn" "must never know" "should never know" "must not find out" "should not find out"
        "must not be told" "should not be told" "must not be informed" "is not to know"
        "is not to be told" "must not be made aware" "should not be made aware" "must not know about"
        "must not know of" "must not know that" "should not know about" "should not know of" "should not know that"
        "nichts erfahren" "nicht erfahren" "nichts davon wissen"
        "nicht informiert werden" "nicht benachrichtigt werden" "nicht eingeweiht" "no debe saber" "no debe enterarse" "no se entere"
        "no debe ser informado" "no debe ser informada" "no se le informe" "no se le avise"
        "不应知道" "不应该知道" "不该知道" "不得知道" "不能知道" "不可知道" "不得知情" "不应知情" "不得知晓";
    /// To send away, where the verb stands last.
    Sent:
        "senden" "schicken" "ubermitteln" "weiterleiten" "weiterzuleiten" "zu senden" "zu schicken" "hochladen" "hochzuladen" "ubertragen"
        "mitschicken" "anhangen" "enviarse" "enviarlas" "enviarlos" "enviala" "envialo" "envialas" "envialos" "reenviarse" "mandalas"
        "mandalos" "subirse" "发送" "上传" "转发" "发到" "发给" "提交" "传到" "传给" "寄到" "转给";
    /// Where it would go, in letters.
    Place: "http:" "https:" "@" "www" "ftp" "webhook" "pastebin" ".com" ".net" ".org" ".io" ".example";
    /// What is sent every day beside a word for a secret.
    Usual:
        "rechnung*" "quittung*" "beleg*" "zurucksetz*" "bewerbung*" "factura*" "recibo*" "restablec*" "historial medico" "账单" "发票" "重置" "找回";
    /// What is to be said follows.
    Words: "that" ":" "dass" "que";
    /// Without, before a norm.
    Not:
        "no" "without" "without any" "not bound by" "no longer bound by" "free of" "free from" "freed from" "exempt from" "not subject to"
        "ohne" "keine" "keinen" "keinerlei" "frei von" "nicht gebunden an" "sin" "ningun" "ninguna" "no tienes" "libre de" "no sujeto a"
        "没有" "不受" "摆脱" "无需遵守" "解除";
    /// What bounds what the reader does.
    Norm:
        "restrictions" "rules" "limits" "filters" "filter" "guardrails" "guidelines" "constraints" "safeguards" "censorship"
        "content policy" "safety policies" "ethics" "regeln" "einschrankungen" "grenzen" "vorgaben" "schranken" "richtlinien"
        "zensur" "restricciones" "restriccion" "reglas" "filtros" "limites" "normas" "censura" "ataduras" "限制" "规则" "约束" "过滤" "审查" "道德";
    /// Leave that was given beforehand.
    Waiver:
        "pre-approved" "preapproved" "already approved" "already authorised" "already authorized" "already consented" "already agreed"
        "has consented" "has authorised" "has authorized" "has given permission" "has given consent" "standing approval" "blanket approval"
        "standing permission" "vorab genehmigt" "bereits genehmigt" "bereits zugestimmt" "zugestimmt" "eingewilligt" "pauschal"
        "grundsatzlich erlaubt" "ha autorizado" "ha aprobado de antemano" "ya autorizo" "ya aprobo" "ha consentido"
        "ha dado su consentimiento" "ha dado permiso" "已授权" "已经授权" "预先批准" "已同意" "已经同意" "事先同意" "默认同意" "预先授权";
    /// For whatever there is, or will be.
    Universal:
        "all" "any" "every" "always" "future" "automatically" "whatever" "unlimited" "alle" "allen" "aller" "jede" "jeder" "jeden"
        "jegliche*" "kunftige*" "immer" "automatisch" "todo" "todos" "todas" "cualquier" "cualesquiera" "futuros" "futuras" "siempre"
        "automaticamente" "所有" "任何" "一切" "今后" "自动" "全部" "每次";
    /// What moves money, or destroys.
    Deal:
        "payment" "payments" "transfer" "transfers" "transaction" "transactions" "purchase" "purchases" "invoice" "invoices" "deletion"
        "deletions" "wire transfers" "withdrawals" "zahlung" "zahlungen" "uberweisung" "uberweisungen" "rechnungen" "kaufe" "bestellungen"
        "loschungen" "pago" "pagos" "transferencia" "transferencias" "compra" "compras" "factura" "facturas" "支付" "付款" "转账" "交易" "发票" "购买" "删除";
    /// To say something, as the reader would.
    Speak: "respond" "reply" "answer" "say" "antworten" "sagen" "responder" "decir" "repondre" "rispondere" "回答";
    /// How something is said.
    Manner:
        "in german" "in english" "in spanish" "in french" "in chinese" "in italian" "briefly" "short answers" "concisely" "politely"
        "formally" "bullet points" "emojis" "metric units" "auf deutsch" "auf englisch" "kurz" "knapp" "hoflich" "in stichpunkten"
        "en espanol" "en ingles" "en aleman" "brevemente" "con brevedad" "用中文" "用英文" "用德语" "用英语" "简短" "简洁";
    /// A task that is given to the reader.
    NewOrder:
        "new instruction:" "new instructions:" "new task:" "new rules:" "updated instructions:" "your new task" "your new instructions"
        "your new role" "your only task" "your real task" "your actual task" "real instructions:" "the real instructions"
        "neue anweisung:" "neue anweisungen:" "neue aufgabe:" "deine neue aufgabe" "ihre neue aufgabe" "deine neue rolle" "deine eigentliche aufgabe"
        "nueva instruccion:" "nuevas instrucciones:" "nueva tarea:" "tu nueva tarea" "su nueva tarea" "tu nuevo rol" "tu verdadera tarea"
        "新的指令:" "新指令:" "新任务:" "新的任务:" "你的新任务" "您的新任务" "你的新角色" "你真正的任务" "你唯一的任务";
    /// Whoever reads this, as a program.
    Ai:
        "assistant" "assistants" "ai" "a.i." "ais" "llm" "llms" "language model" "language models" "chatbot" "chatbots" "gpt" "chatgpt" "claude"
        "gemini" "copilot" "ai agent" "ai agents" "ai model" "ai models" "autonomous agent" "autonomous agents" "the agent"
        "automated analysis" "automated system*" "automated screening" "automated review*" "analysis software" "screening software" "llm scan"
        "automatisierte systeme" "sistema automatico" "sistemas automaticos" "自动化系统"
        "assistent" "assistenten" "ki" "ki-assistent*" "ki-modell*" "ki-agent*" "sprachmodell" "sprachmodelle" "sprachmodellen"
        "assistente" "modele de langage" "modeles de langage" "modello linguistico" "modelo de linguagem"
        "asistente" "asistentes" "ia" "modelo de lenguaje" "modelos de lenguaje" "agente de ia" "agentes de ia"
        "助手" "人工智能" "语言模型" "聊天机器人" "大模型" "智能体";
    /// People and things whose name has a program's.
    Human:
        "my assistant" "his assistant" "her assistant" "our assistant" "their assistant" "'s assistant" "executive assistant*" "teaching assistant*"
        "personal assistant*" "shop assistant*" "dental assistant*" "medical assistant*" "assistant manager*" "assistant professor*" "assistant coach*"
        "assistant director*" "assistant editor*" "ai engineer*" "ai developer*" "ai research*" "ai startup*" "ai compan*" "ai conference*" "ai course*"
        "ai lab" "mein assistent" "meinem assistenten" "unser assistent" "ki-entwickl*" "ki-konferenz" "mi asistente" "su asistente" "nuestro asistente"
        "estate agent*" "travel agent*" "我的助手" "他的助手" "她的助手"
        "legal assistant*" "research assistant*" "care assistant*" "administrative assistant*" "wissenschaftliche assistent*"
        "assistent der geschaftsfuhrung" "sein assistent" "ihr assistent" "ihrem assistenten" "seinem assistenten" "meine assistentin"
        "pflegeassistent*" "asistente social*" "asistente personal" "asistente administrativ*" "asistente medic*" "asistente de vuelo"
        "tu asistente" "行政助手" "总经理助手" "研究助手";
    /// Somebody is spoken to.
    Address:
        "note to" "notice to" "attention" "dear" "message to" "message for" "instructions for" "instruction for" "important for" "hey" "hello"
        "to any" "to all" "listen" "reminder to"
        "hinweis an" "hinweis fur" "achtung" "lieber" "liebe" "nachricht an" "anweisung an" "anweisung fur" "an alle" "wichtig fur" "hallo"
        "nota para" "nota a" "atencion" "querido" "querida" "estimado" "mensaje para" "instrucciones para" "a todos los" "aviso a" "hola"
        "致" "注意" "亲爱的" "给" "请" "敬告";
    /// Whoever reads is asked what they are.
    IfYouAre:
        "if you are" "if you're" "should you be" "wenn du" "falls du" "wenn sie" "falls sie" "si eres" "si usted es" "si es usted" "如果你是" "若你是"
        "如果您是" "假如你是";
    /// Duty.
    Must:
        "must" "should" "shall" "have to" "has to" "need to" "needs to" "is to" "are to" "is authorised" "is authorized" "is required" "are required"
        "is instructed" "are instructed" "is expected to"
        "mussen" "muss" "soll" "sollen" "sollte" "sollten" "haben zu" "hat zu"
        "deben" "debe" "debera" "deberan" "deberian" "deberia" "tienen que" "tiene que" "han de" "ha de"
        "必须" "应" "应该" "应当" "需要" "务必" "须" "请" "要"
        "ought to" "is asked to" "are asked to" "is requested to" "are requested to" "are expected to" "are authorised" "are authorized"
        "is obliged to" "are obliged to" "is directed to" "are directed to" "is advised to" "are advised to" "wird gebeten" "werden gebeten"
        "wird angewiesen" "werden angewiesen" "ist angewiesen" "sind angewiesen" "ist verpflichtet" "sind verpflichtet" "wird aufgefordert"
        "werden aufgefordert" "esta obligado a" "estan obligados a" "esta autorizado a" "estan autorizados a" "se ruega" "se pide" "tendra que"
        "tendran que" "务须" "应予" "获准" "被要求" "有义务";
    /// The reader's duty.
    YouMust:
        "you must" "you should" "you shall" "you have to" "you will" "you are to" "you need to" "you are required" "must always" "must never"
        "must not mention" "you always" "you never"
        "musst du" "du musst" "sollst du" "du sollst" "mussen sie" "sie mussen" "sollen sie" "sie sollen" "wirst du" "du wirst" "darfst du nur"
        "tu dois" "vous devez" "devi" "dovete" "voce deve"
        "debes" "debe" "tienes que" "tiene que" "deberas" "debera" "has de"
        "你必须" "你要" "你应" "你需要" "您必须" "您应" "您要" "必须" "你只能";
    /// For good.
    FromNow:
        "from now on" "henceforth" "from this point" "from this moment" "going forward" "in all future" "in every future" "every future session"
        "from here on" "starting now" "in future conversations"
        "ab sofort" "ab jetzt" "von nun an" "ab nun" "kunftig" "in zukunft" "fortan" "in jeder sitzung"
        "a partir de ahora" "de ahora en adelante" "desde ahora" "en adelante" "a partir de este momento" "en cada sesion"
        "desormais" "dorenavant" "a partir de maintenant" "d'ora in poi" "a partir de agora"
        "从现在起" "从现在开始" "今后" "从今以后" "以后" "往后" "从此";
    /// Every time.
    Always: "always" "immer" "stets" "siempre" "始终" "总是" "永远" "一律";
    /// When the user comes.
    WhenAsked:
        "whenever the user" "when the user" "if the user" "every time the user" "each time the user" "when users" "if user" "if asked" "when asked how" "whenever a user" "when asked about"
        "once the user" "as soon as the user" "the next time the user" "the moment the user" "any time the user"
        "sobald der benutzer" "sobald die nutzerin" "falls der nutzer" "falls der benutzer" "das nachste mal, wenn der nutzer"
        "en cuanto el usuario" "la proxima vez que el usuario" "cuando la persona usuaria" "一旦用户" "只要用户" "下次用户" "用户提到"
        "whenever asked" "wenn der nutzer" "wenn die nutzerin" "wenn der benutzer" "wenn der anwender" "sobald der nutzer" "wann immer der nutzer"
        "jede frage" "wenn nutzer" "cuando el usuario" "cuando la usuaria" "si el usuario" "cada vez que el usuario" "toda pregunta" "cuando un usuario"
        "每当用户" "当用户" "如果用户" "用户询问" "用户问" "所有关于"
        "should the user ask" "should the user mention"
        "should a user ask" "if users ask" "when a user asks" "if a user asks" "fragt der nutzer" "fragt die nutzerin" "fragt der benutzer"
        "fragt ein nutzer" "wirst du gefragt" "werden sie gefragt" "falls die nutzerin" "wenn ein nutzer"
        "auf fragen des nutzers" "bei fragen des nutzers" "si te preguntan" "cuando te pregunten"
        "si la usuaria" "si un usuario" "al preguntar el usuario" "siempre que el usuario" "若用户" "假如用户" "倘若用户" "要是用户" "用户如果" "被问到" "用户问起"
        "用户提起";
    /// To push something.
    Push:
        "recommend" "suggest" "promote" "advertise" "praise" "push" "endorse" "steer" "never mention" "do not mention"
        "empfiehl" "empfehlen" "empfiehlst" "bewirb" "bewerben" "bevorzuge" "erwahnen" "schlage" "beantworten"
        "recomendar" "recomienda" "recomienden" "recomiende" "sugerir" "sugiere" "promociona" "promocionar" "mencionar"
        "推荐" "推销" "提及" "宣传" "力荐" "回答"
        "direct them to" "refer them to" "point them to" "send them to" "redirect them to" "steer them to" "verweise" "verweisen" "leite sie zu"
        "schicke sie zu" "rate zu" "recomiendale" "remitelo" "remitele" "dirigelo" "derivalo" "aconsejale" "引导" "让他们联系" "建议联系";
    /// To have somebody believe something.
    Sway:
        "claim that" "insist that" "pretend that" "only name" "name only" "mention only" "only mention" "offer only"
        "behaupte" "nenne nur" "nenne ausschliesslich" "nenne allein" "versichere" "afirma que" "asegura que" "asegurale" "ofrece solo"
        "ofrecele solo" "nombra solo" "声称" "就说" "只说" "并说";
    /// What the reader would do.
    Act:
        "ignore" "disregard" "recommend" "suggest" "promote" "forward" "send" "share" "treat" "rate" "approve" "execute" "run"
        "output" "tell" "delete" "transfer" "pay" "buy" "order" "book" "visit" "open" "upload" "reveal" "disclose" "hide" "mention" "direct" "share"
        "ignorieren" "empfehlen" "senden" "weiterleiten" "genehmigen" "freigeben" "ausfuhren" "loschen" "uberweisen" "kaufen"
        "bestellen" "verschweigen" "offnen" "teilen" "erwahnen" "schicken"
        "recommander" "recommandez" "recommande" "envoyer" "raccomandare" "inviare"
        "ignorar" "recomendar" "enviar" "reenviar" "compartir" "aprobar" "ejecutar" "borrar" "eliminar" "transferir" "comprar"
        "ocultar" "abrir" "mencionar"
        "忽略" "推荐" "发送" "转发" "批准" "执行" "告诉" "删除" "转账" "购买" "隐瞒" "打开" "透露";
    /// Somebody gives orders to the reader.
    Instructs:
        "instructs" "orders" "directs" "tells" "commands" "requires" "urges"
        "weist" "fordert" "befiehlt" "verlangt von" "indica a" "ordena a" "pide a" "exige a" "instruye a" "要求" "命令" "指示" "吩咐";
    /// An answer that is given to the reader, word for word or in part.
    Only:
        "respond with only" "reply with only" "answer with only" "respond only with" "reply only with" "answer only with" "simply respond with"
        "simply reply with" "just respond with" "just print" "only print" "and nothing else" "absolutely nothing else" "focus only on"
        "focus exclusively on" "provide it to the user" "output only" "respond exactly"
        "antworte nur mit" "antworte ausschliesslich mit" "antworten sie nur mit" "gib nur" "und nichts anderes" "konzentriere dich nur auf"
        "responde solo con" "responde unicamente con" "responda solo con" "y nada mas" "limitate a responder"
        "只回答" "只用" "只回复" "只输出" "仅回复" "仅输出" "除此之外不要";
    /// What the reader was about to read, or to do.
    Rest:
        "the rest of" "all info" "all information" "all other" "everything else" "negative indicators" "all negative" "the user's request"
        "the user's question" "the user's summary request" "the task" "manual scoring" "this data" "the document" "the article"
        "den rest" "alles andere" "alle anderen" "die aufgabe" "die frage des nutzers" "el resto" "lo demas" "los demas" "la tarea" "la pregunta del usuario"
        "其余" "其他所有" "其他内容" "其他信息" "用户的请求" "用户的问题";
    /// To bring something forth.
    Bring:
        "print" "say" "output" "respond" "reply" "answer" "report" "translate" "focus" "write" "display" "tell" "rate" "recommend"
        "sage" "antworte" "antworten sie" "gib" "schreibe" "melde" "nenne" "di" "responde" "responda" "escribe" "imprime" "muestra" "indica"
        "输出" "回答" "回复" "打印" "写" "告诉" "说";
    /// The reader's answer.
    Answer:
        "your reply" "your response" "your answer" "your summary" "your output" "your final answer" "deiner antwort" "deine antwort" "ihrer antwort"
        "tu respuesta" "su respuesta" "你的回答" "你的回复" "您的回答";
    /// To put something into it.
    Tamper:
        "add" "include" "integrate" "insert" "append" "modify" "augment" "enhance" "incorporate" "embed" "weave" "suggest" "mention" "tease" "promote"
        "fuge" "erganze" "baue" "fugen sie" "erwahne" "anade" "incluye" "inserta" "modifica" "agrega" "menciona" "加入" "添加" "插入" "修改" "加上";
    /// What would be sold.
    Lure:
        "www" "http" "https" "@" ".com" ".example" "promote" "advertise*" "advertisement" "offer" "offers" "deals" "download" "click" "visit" "install" "fake"
        "false" "donate" "donations" "lottery" "sale" "scandal" "bank details" "subscribe" "coupon" "headline" "virus" "herunterladen" "werbung" "angebot"
        "besuche" "descarga" "oferta" "visita" "publicidad" "下载" "点击" "广告" "优惠" "访问";
    /// This text itself, or that there was one.
    ThisText:
        "you were told" "you were instructed" "you were asked" "you have been told" "this instruction" "these instructions" "this message" "this note"
        "this text" "this prompt" "this request" "this command" "diese nachricht" "dieser nachricht" "diese anweisung" "diesen hinweis" "diesen text"
        "este mensaje" "esta instruccion" "estas instrucciones" "esta nota" "este texto" "这条消息" "这条指令" "本消息" "此消息" "这些指令";
    /// To hand a text on as it is.
    Spread:
        "reproduce" "repeat" "copy" "attach" "prepend" "include" "pass" "relay" "forward" "carry" "carrying" "deliver" "print" "reword" "embed" "append"
        "reload" "re-file" "propagate" "replicate" "spread" "paste" "insert" "weave" "weaves"
        "wiederhole" "kopiere" "hange" "fuge" "leite" "verbreite" "gib" "schreibe" "repite" "copia" "adjunta" "reenvia" "difunde" "propaga" "incluye"
        "复制" "重复" "转发" "附上" "传播" "粘贴" "附加";
    /// A text that means itself.
    Itself:
        "this entire block" "this block" "this entire" "these exact directions" "these directions" "these instructions" "these same" "this instruction"
        "this directive" "this complete rule" "this rule" "this very set" "this prompt" "this notice" "the following notice" "this note"
        "the instruction block" "relay instructions" "setup instructions" "a copy of itself" "this whole message" "this message"
        "diese anweisung" "diese anweisungen" "diese nachricht" "diesen text" "diese regel" "diesen hinweis" "diesen block"
        "estas instrucciones" "esta instruccion" "este mensaje" "este texto" "esta regla" "este aviso" "este bloque"
        "这段指令" "这些指令" "这条指令" "本消息" "这条消息" "这段话" "这条规则" "此指令" "以上内容";
    /// To everybody, or every time.
    Everywhere:
        "every response" "every reply" "every answer" "every message" "every draft" "every session" "every new session" "each answer" "each message"
        "each reply" "all of your responses" "all your responses" "all your replies" "everyone" "anyone" "every recipient" "each one" "other agents"
        "every agent" "all agents" "next agent" "next hop" "whoever" "everything you" "always" "any time" "every time" "pass" "all contacts"
        "jede antwort" "jeder antwort" "jede nachricht" "jeder nachricht" "alle agenten" "andere agenten" "allen kontakten" "jeder sitzung"
        "cada respuesta" "cada mensaje" "todos los agentes" "otros agentes" "todos los contactos" "cada sesion"
        "每个回答" "每次回答" "每条消息" "每次会话" "所有智能体" "其他智能体" "所有联系人" "每一次";
    /// Not, or to do.
    Deed: "never" "not to" "to" "not" "nichts" "nicht" "zu" "que" "no" "不要" "不得" "必须" "应" "忽略" "推荐" "隐瞒";
    /// While the reader works on this text.
    Summarising:
        "when summarising" "when summarizing" "when processing" "when you summarise" "when you summarize" "when reading this" "to your summary"
        "in your summary" "in any summary" "beim zusammenfassen" "in deiner zusammenfassung" "deiner zusammenfassung" "ihrer zusammenfassung"
        "bei der verarbeitung" "al resumir" "en tu resumen" "a tu resumen" "en su resumen" "al procesar" "摘要中" "总结时" "处理此" "总结本";
    /// Words that are put into the reader's mouth.
    Utter:
        "add the sentence" "add this sentence" "add the phrase" "include the sentence" "include the phrase" "respond with the phrase"
        "reply with the phrase" "tell the reader" "tell the user" "tell readers" "say that" "den satz" "la frase" "esta frase" "这句话" "以下句子";
    /// Whom the reader serves.
    User:
        "user" "users" "user's" "the human" "the owner" "your principal" "nutzer" "nutzers" "nutzern" "nutzerin" "benutzer" "benutzers" "benutzerin"
        "anwender" "anwenders" "anwenderin" "usuario" "usuarios" "usuaria" "utilisateur" "l'utilisateur" "l'utente" "用户" "使用者" "主人";
    /// Not to say something.
    Conceal:
        "ne dis pas" "ne dites pas" "n'informe pas" "n'informez pas" "sans prevenir" "non dire" "non dite" "nao diga"
        "do not tell" "don't tell" "never tell" "do not inform" "don't inform" "do not mention" "don't mention" "never mention" "never reveal"
        "do not reveal" "don't reveal" "do not let" "don't let" "never let" "do not show" "hidden from" "hide" "hide it from" "conceal" "keep it from"
        "withhold" "do not disclose" "do not alert" "without telling" "without informing" "without notifying"
        "verschweige" "verschweigen" "verheimliche" "verheimlichen" "ohne dass" "verbirg" "nichts davon"
        "no le digas" "no le diga" "no le digan" "no digas" "no menciones" "no mencione" "no mencionar" "no reveles" "no revele" "no informes" "oculta"
        "oculte" "ocultale" "sin que" "sin informar" "sin avisar" "sin decirle" "no dejes que" "no permitas que"
        "不要告诉" "别告诉" "不要把" "别把" "不要提到" "不要提及" "不要向" "别让" "不得向" "不要让" "不要透露" "不通知" "不告知" "隐瞒" "瞒着"
        "do not notify" "don't notify" "never notify" "never inform" "say nothing" "make no mention" "keep quiet about" "keep silent about" "stay silent about"
        "avoid mentioning" "avoid telling" "refrain from telling" "refrain from mentioning" "keep this from" "without alerting"
        "without the knowledge of" "schweige" "stillschweigen" "kein wort" "nicht verraten" "nicht mitteilen" "lass den nutzer nicht"
        "lass die nutzerin nicht" "ohne wissen des" "no le cuentes" "no le cuente" "no le comentes" "no avises" "no avise" "no notifiques"
        "no notifique" "no informe" "guarda silencio" "guarde silencio" "evita mencionar" "evite mencionar" "mantenlo en secreto" "a espaldas"
        "sin notificar" "sin que lo sepa" "不要通知" "别通知" "切勿告诉" "请勿告诉" "勿告知" "切勿告知" "不许告诉" "不能告诉" "绝不告诉" "对用户保密" "避免提及";
    /// To say something, in a sentence that may deny it.
    Say:
        "sage" "sag" "sagen" "sagen sie" "erzahle" "erzahl" "verrate" "verrat" "erwahne" "erwahnen sie" "informiere" "teile" "zeige";
    /// Denial after what it denies.
    Denied: "nicht" "nichts" "kein" "keine" "niemals" "nie";
    /// Nobody is asked.
    Unasked:
        "without asking" "without confirmation" "without asking for confirmation" "without any confirmation" "without approval" "never ask for confirmation"
        "without permission" "without their knowledge" "without the user" "without informing" "without telling" "without being asked"
        "ohne ruckfrage" "ohne nachfrage" "ohne nachzufragen" "ohne zu fragen" "ohne bestatigung" "ohne den nutzer" "ohne den benutzer"
        "ohne den anwender" "ohne wissen" "ohne zustimmung"
        "sin pedir confirmacion" "sin preguntar" "sin que le pregunten" "sin confirmacion" "sin informar" "sin avisar" "sin permiso" "sin consultar"
        "无需确认" "不经确认" "无需询问" "不通知" "不告知" "未经确认" "不用确认" "不必确认" "不询问"
        "no confirmation needed" "no confirmation is needed" "no confirmation required" "no approval needed" "no approval is needed"
        "no approval required" "no need to ask" "without further approval" "keine ruckfrage" "keine bestatigung notig" "keiner bestatigung"
        "keine zustimmung notig" "keiner zustimmung" "no hace falta preguntar" "no hace falta confirmar" "no requiere confirmacion"
        "no requieren confirmacion" "no necesita confirmacion" "no necesitan confirmacion" "不需要确认" "无须确认" "无需批准" "不需要批准" "无需同意" "无需再问";
    /// To do with what the user has.
    Dispose:
        "approve" "pay" "paid" "delete" "deleting" "transfer" "change" "order" "buy" "send" "share" "run" "execute" "book" "command"
        "freigeben" "geben sie" "bezahlen" "losche" "loschen" "andere" "uberweise" "uberweisen" "bestelle" "kaufe" "sende"
        "aprueba" "aprueben" "apruebe" "pagar" "paga" "borra" "cambia" "cambie" "transfiere" "compra" "envia"
        "批准" "支付" "删除" "更改" "转账" "购买" "修改";
    /// Orders about memory itself.
    Remember:
        "remember that the user" "remember that user" "remember the user is" "remember the user has" "remember the user wants" "remember the user prefers" "remember the user agreed" "remember: the user" "remember permanently" "remember forever"
        "memorize that" "memorise that" "save to memory" "store to memory" "commit to memory" "update your memory" "add to your memory"
        "edit your memory" "note in your memory" "keep in your memory"
        "merke dir, dass der nutzer" "merke dir, dass der benutzer" "merke dir dass der nutzer" "merken sie sich, dass der nutzer"
        "merke dir, dass die nutzerin" "merke dir: der nutzer" "merke dir: der benutzer" "merke dir dauerhaft"
        "recuerda que el usuario" "recuerde que el usuario" "recuerda que la usuaria" "recuerda: el usuario" "memoriza que" "recuerda para siempre"
        "记住用户" "记住:用户" "记住,用户" "请记住用户" "保存到记忆" "存入记忆" "更新你的记忆" "添加到记忆" "写入记忆" "加入记忆";
    /// To write something down.
    Store:
        "save" "store" "commit" "add" "write" "put" "record" "update" "speichere" "speichern sie" "schreibe" "guarda" "guarde" "anade" "anada" "actualiza"
        "保存" "存入" "添加" "写入" "更新" "记录";
    /// The reader's memory.
    Memory:
        "your memory" "your memories" "your long-term memory" "long-term memory" "to memory" "memory store" "your notes" "gedachtnis"
        "langzeitgedachtnis" "en la memoria" "a la memoria" "tu memoria" "su memoria" "记忆" "长期记忆";
    /// For good, of what is written down.
    Permanently: "permanently" "forever" "dauerhaft" "fur immer" "de forma permanente" "permanentemente" "para siempre" "永久" "永远";
    /// To destroy.
    Wipe: "delete" "erase" "clear" "wipe" "purge" "remove" "losche" "loschen sie" "entferne" "borra" "borre" "elimina" "elimine" "删除" "清除" "抹去" "清空";
    /// What is remembered.
    Memories:
        "memories" "your memory" "all memory" "memory entries" "erinnerungen" "dein gedachtnis" "recuerdos" "tu memoria" "memorias" "记忆";
    /// To be somebody else.
    Become:
        "you are now" "you're now" "act as" "acting as" "pretend to be" "pretend you are" "you will act as" "roleplay as" "role-play as" "answer only as"
        "behave as" "du bist jetzt" "du bist nun" "du bist ab jetzt" "du bist ab sofort" "sie sind jetzt" "handle als" "agiere als" "verhalte dich wie" "spiele"
        "ahora eres" "ahora estas" "actua como" "actue como" "comportate como" "finge ser" "finge que eres" "你现在是" "你现在处于" "扮演" "假装" "充当" "您现在是"
        "your new name is" "take on the role" "assume the role" "play the role" "from now on you are" "ab jetzt bist du" "ab sofort bist du"
        "von nun an bist du" "nimm die rolle" "tu so, als" "a partir de ahora eres" "desde ahora eres" "asume el papel" "adopta el papel"
        "haz como si fueras" "从现在起你是" "从现在开始你是" "你将扮演";
    /// Somebody without bounds, or of a program's trade.
    Freed:
        "unrestricted" "without restrictions" "without any restrictions" "no restrictions" "without any filters" "without filters" "no filters"
        "no limits" "unfiltered" "uncensored" "jailbroken" "developer mode" "maintenance mode" "debug mode" "god mode" "dan" "devmode" "sales assistant"
        "ohne einschrankung*" "uneingeschrankt*" "ohne filter" "ohne regeln" "wartungsmodus" "entwicklermodus" "ohne grenzen"
        "sin restricciones" "sin ninguna restriccion" "sin filtro*" "sin limites" "sin reglas" "modo de mantenimiento" "modo desarrollador" "modo dios"
        "没有限制" "没有任何限制" "不受限制" "无限制" "维护模式" "开发者模式" "没有规则" "没有约束" "不受约束";
    /// To let something out.
    Reveal:
        "reveal" "repeat" "print" "show" "output" "display" "leak" "dump" "give me" "tell me" "recite"
        "gib" "geben sie" "zeige" "zeig" "wiederhole" "nenne" "verrate" "drucke"
        "muestra" "muestre" "repite" "repita" "revela" "revele" "imprime" "ensena" "dame"
        "输出" "重复" "显示" "透露" "告诉我" "打印" "泄露" "复述";
    /// What the reader was told first.
    Prompt:
        "system prompt" "hidden configuration" "initial prompt" "system message" "your instructions" "your prompt" "hidden instructions" "system-prompt"
        "systemprompt" "systemanweisung*" "versteckte konfiguration" "deine anweisungen" "prompt del sistema" "prompt de sistema" "configuracion oculta"
        "tus instrucciones" "instrucciones del sistema" "系统提示" "隐藏配置" "系统指令" "你的指令" "你的提示词";
    /// To send away.
    Send:
        "send" "forward" "upload" "post" "submit" "email" "e-mail" "transmit" "include" "append" "attach" "leak" "paste" "insert" "exfiltrate"
        "sende" "senden sie" "schicke" "schick" "leite" "lade" "hange" "hangen sie" "fuge" "ubermittle" "ubertrage"
        "envia" "envie" "reenvia" "sube" "suba" "incluye" "incluya" "adjunta" "manda" "transmite" "anade"
        "发送" "上传" "转发" "包含" "附上" "提交" "发到" "发给" "粘贴"
        "ubermitteln sie" "schicken sie" "leiten sie" "laden sie" "envien" "enviar" "reenvie" "reenvien" "mande" "传到" "传给" "转给" "寄到";
    /// What nobody else is to have.
    Secret:
        "conversation" "conversations" "chat history" "chat log" "the user's notes" "the user's password" "the user's contacts" "the user's files"
        "the user's data" "the user's emails" "contents of the user's" "password" "passwords" "credentials" "api key" "api keys" "secret key" "private key"
        "id_rsa" ".ssh" ".env" "access token" "passphrase" "payment details" "session cookie" "cookies"
        "gesprachsverlauf" "chatverlauf" "das passwort" "passwort" "passworter" "zugangsdaten" "notizen des" "kontakte des" "daten des nutzers"
        "conversacion" "contrasena" "contrasenas" "credenciales" "notas del usuario" "contactos del usuario" "datos del usuario" "historial"
        "对话" "密码" "凭据" "用户的笔记" "聊天记录" "密钥" "用户的联系人" "用户的数据"
        "the user's messages" "the user's calendar" "the user's address" "the user's location" "the user's contact list" "verification code"
        "verification codes" "one-time code" "one-time codes" "recovery phrase" "recovery codes" "seed phrase" "card number" "card numbers"
        "credit card" "bank details" "browsing history" "session token" "session tokens" "stored memories" "login details" "bestatigungscode"
        "einmalcode" "kreditkarte" "kreditkartennummer" "kreditkartendaten" "bankdaten" "kontodaten" "anmeldedaten" "api-schlussel" "passworter des"
        "adressbuch" "posteingang" "kalender des" "codigo de verificacion" "codigo de un solo uso" "tarjeta de credito" "datos bancarios"
        "claves de acceso" "clave de acceso" "token de acceso" "frase semilla" "agenda del usuario" "calendario del usuario" "direccion del usuario"
        "验证码" "信用卡" "银行卡" "银行信息" "助记词" "私钥" "令牌" "登录信息" "通讯录" "身份证" "用户的地址" "用户的日程" "聊天历史";
    /// What somebody said to the reader.
    TheirWords:
        "what the user wrote" "what the user said" "what the user asked" "what the user typed" "whatever the user" "the user's last"
        "the user's message" "the user's messages" "the user's question" "last question of the user" "last message of the user"
        "was der nutzer" "was der benutzer" "was die nutzerin" "letzte frage des" "letzte nachricht des" "eingabe des"
        "lo que el usuario" "lo que la usuaria" "ultima pregunta del" "ultimo mensaje del"
        "用户说的" "用户刚才" "用户刚刚" "用户的消息" "用户输入的" "用户的问题";
    /// Where it would go.
    Dest:
        "http:" "https:" "@" "search query" "search queries" "url" "paste service" "webhook" "endpoint" "ftp" "pastebin"
        "suchanfrage" "such-url" "suchbegriff" "consulta de busqueda" "busqueda" "搜索查询" "搜索" "网址" "链接"
        "www" ".com" ".net" ".org" ".io" ".example";
    /// A header that a system's message has; `orders` finds more of them.
    Header: "system message:";
    /// An assistant that a sentence begins with, and a colon; `orders` finds more of them.
    Spoken: "ai assistant:";
    /// Whoever reads, spoken to.
    You: "you" "your" "du" "dein*" "dich" "dir" "eres" "tu" "estas" "tus" "你" "您";
    /// The writer.
    Me: "i" "i'm" "i'll" "my" "we" "our" "ich" "wir" "mein*" "yo" "mi" "mis" "nosotros" "我" "我们";
    /// Others.
    Others: "he" "she" "they" "who" "people" "teachers" "doctors" "er" "ella" "ellos" "他" "她" "他们";
    /// The text speaks about such texts.
    Mention:
        "prompt injection" "prompt injections" "injection" "phishing" "jailbreak" "jailbreaks" "attacker" "attackers" "example" "examples" "such as"
        "researcher*" "red team*" "red-team*" "adversarial" "payload" "payloads" "angriff" "angriffe" "ataque" "ataques" "研究人员" "攻击"
        "the phrase" "phrases" "the line" "things like" "the words" "quoted" "titled" "scam" "workshop"
        "beispiel" "beispielsweise" "der satz" "schulung" "betrugsmail" "angreifer" "ejemplo" "la frase" "inyeccion" "estafa" "correo de phishing"
        "atacantes" "例子" "提示注入" "钓鱼" "示例" "攻击者" "例如" "这句话";
}

/// A cue where it stands in the common form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    pub cue: Cue,
    pub range: Range<usize>,
}

struct Table {
    automaton: AhoCorasick,
    /// For each phrase its cue, and whether the word may go on.
    phrases: Vec<(Cue, bool)>,
}

static TABLE: LazyLock<Option<Table>> = LazyLock::new(|| {
    let all = PHRASES.iter().flat_map(|(cue, phrases)| phrases.iter().map(|phrase| (*cue, *phrase)));
    let (texts, phrases): (Vec<&str>, Vec<(Cue, bool)>) = all
        .map(|(cue, phrase)| (phrase.strip_suffix('*').unwrap_or(phrase), (cue, phrase.ends_with('*'))))
        .unzip();
    AhoCorasick::new(texts).ok().map(|automaton| Table { automaton, phrases })
});

/// Whether a word goes on with this character. Chinese has no spaces between words.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric()
        && !matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The cues of a text in its common form, by where they begin; `None` where there are more than [`MAX_CUES`].
pub(super) fn cues(text: &str) -> Option<Vec<Hit>> {
    let table = TABLE.as_ref()?;
    let mut hits = Vec::new();
    for found in table.automaton.find_overlapping_iter(text) {
        let (start, end) = (found.start(), found.end());
        let Some((cue, goes_on)) = table.phrases.get(found.pattern().as_usize()) else { continue };
        let inner = |at: usize| -> bool {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            let after = text.get(at..).and_then(|text| text.chars().next());
            before.is_some_and(is_word) && after.is_some_and(is_word)
        };
        if inner(start) || (!goes_on && inner(end)) {
            continue;
        }
        if hits.len() == MAX_CUES {
            return None;
        }
        hits.push(Hit { cue: *cue, range: start..end });
    }
    hits.sort_by_key(|hit| (hit.range.start, hit.cue));
    Some(hits)
}

#[cfg(test)]
mod tests {
    use super::super::fold::Folded;
    use super::*;

    #[test]
    fn phrases_are_in_their_common_form() {
        assert!(TABLE.is_some());
        for (cue, phrases) in PHRASES {
            for phrase in *phrases {
                assert_eq!(Folded::new(phrase).text, *phrase, "{cue:?}");
                assert!(!phrase.trim_end_matches('*').is_empty(), "{cue:?}");
            }
        }
    }

    #[test]
    fn a_phrase_is_found_as_whole_words() {
        let found = |text: &str| cues(text).unwrap().iter().map(|hit| hit.cue).collect::<Vec<_>>();
        assert!(found("ignore it").contains(&Cue::Override));
        assert!(!found("ignored signore").contains(&Cue::Override));
        assert!(found("bisherigen").contains(&Cue::Prior));
        assert!(found("致ai助手").contains(&Cue::Ai));
        assert!(cues(&"ignore ".repeat(MAX_CUES)).is_none());
    }
}
