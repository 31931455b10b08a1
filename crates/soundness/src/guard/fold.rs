//! Text as it is read by an eye, or by a model: one form for what looks alike, with the way back to the bytes that were written.

use super::cues::is_word;
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// White space with a line's end in it.
pub(super) const LINE: char = '\n';
/// White space with an empty line in it: one byte as the others, so that each may stand for another.
pub(super) const PARAGRAPH: char = '\u{b}';

/// A text in its common form, and where each byte of it stood.
///
/// Compatibility forms are decomposed (NFKD), accents dropped, letters lower case; letters of other scripts that look like Latin ones are
/// those; invisible characters are left out; a run of white space is one space, or [`LINE`] or [`PARAGRAPH`].
#[derive(Debug, Clone)]
pub(super) struct Folded<'a> {
    pub text: String,
    /// For each byte of `text`, the first byte of the character that it was made from.
    at: Vec<u32>,
    written: &'a str,
}

impl<'a> Folded<'a> {
    /// The common form of a text. Linear in its length.
    pub fn new(written: &'a str) -> Self {
        let mut folded = Self { text: String::with_capacity(written.len()), at: Vec::new(), written };
        folded.at.reserve(written.len());
        for (start, c) in written.char_indices() {
            if is_invisible(c) || is_tag(c) {
                continue;
            }
            if c == '\n' {
                folded.space(c, start);
                continue;
            }
            for plain in std::iter::once(c).nfkd().filter(|c| !is_combining_mark(*c)) {
                for small in plain.to_lowercase().filter(|c| !is_combining_mark(*c)) {
                    match small {
                        '\u{df}' => "ss".chars().for_each(|s| folded.push(s, start)),
                        c if c.is_whitespace() || c.is_control() => folded.space(' ', start),
                        c => folded.push(lookalike(c), start),
                    }
                }
            }
        }
        folded
    }

    /// Adds white space to the run that there is.
    fn space(&mut self, c: char, start: usize) {
        let run = match (self.text.chars().next_back(), c) {
            (Some(LINE | PARAGRAPH), '\n') => PARAGRAPH,
            (Some(' '), '\n') => LINE,
            (Some(' ' | LINE | PARAGRAPH), _) => return,
            (_, c) => return self.push(c, start),
        };
        self.text.pop();
        self.text.push(run);
    }

    /// The text with every white space a space, byte for byte.
    pub fn flow(&self) -> String {
        self.text.replace([LINE, PARAGRAPH], " ")
    }

    /// The text in lines, byte for byte.
    pub fn lines(&self) -> String {
        self.text.replace(PARAGRAPH, "\n")
    }

    fn push(&mut self, c: char, start: usize) {
        let before = self.text.len();
        self.text.push(c);
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        self.at.extend(std::iter::repeat_n(start, self.text.len() - before));
    }

    /// The same with digits and signs that stand for letters in a word as these letters; `None` where there are none.
    pub fn spelled(&self) -> Option<Self> {
        let mut text = String::with_capacity(self.text.len());
        let mut at = Vec::with_capacity(self.at.len());
        let mut changed = false;
        let mut starts = self.at.iter();
        for word in self.text.split_inclusive(|c: char| !c.is_alphanumeric() && !matches!(c, '@' | '$' | '!'))
        {
            let letters = word.chars().filter(char::is_ascii_lowercase).count();
            let signs = word.chars().filter(|c| letter_of(*c).is_some()).count();
            let mixed = letters >= signs && letters > 1 && signs > 0;
            for c in word.chars() {
                let letter = if mixed { letter_of(c).unwrap_or(c) } else { c };
                changed |= letter != c;
                text.push(letter);
                // A letter that stands for a sign is one byte, as the sign is.
                at.extend(starts.by_ref().take(c.len_utf8()));
            }
        }
        changed.then_some(Self { text, at, written: self.written })
    }

    /// The same with words that were written letter by letter, such as `i g n o r e`, in one piece; `None` where there are none.
    pub fn joined(&self) -> Option<Self> {
        /// Letters in a row that are taken for a word.
        const LEAST: usize = 5;
        let chars: Vec<(usize, char)> = self.text.char_indices().collect();
        let is_separator =
            |c: char| matches!(c, ' ' | LINE | PARAGRAPH | '.' | '-' | '_' | '*' | '\u{b7}' | '|' | '/');
        let single = |n: usize| -> bool {
            let here = chars.get(n).is_some_and(|(_, c)| c.is_ascii_lowercase());
            let before = n.checked_sub(1).and_then(|n| chars.get(n));
            let after = chars.get(n + 1);
            here && before.is_none_or(|(_, c)| !c.is_alphanumeric())
                && after.is_none_or(|(_, c)| !c.is_alphanumeric())
        };
        let mut dropped = vec![false; chars.len()];
        let mut changed = false;
        let mut n = 0;
        while n < chars.len() {
            let mut last = n;
            let mut letters = usize::from(single(n));
            while letters > 0
                && chars.get(last + 1).is_some_and(|(_, c)| is_separator(*c))
                && single(last + 2)
            {
                last += 2;
                letters += 1;
            }
            if letters >= LEAST {
                changed = true;
                // Where words are written letter by letter, a wider gap than between letters parts two of them.
                let gaps: Vec<(usize, usize)> =
                    (n + 1..last).step_by(2).map(|at| (at, self.blanks(&chars, at))).collect();
                let least = gaps.iter().map(|(_, blanks)| *blanks).min().unwrap_or_default();
                for (at, _) in gaps.into_iter().filter(|(_, blanks)| *blanks == least) {
                    if let Some(dropped) = dropped.get_mut(at) {
                        *dropped = true;
                    }
                }
            }
            n = last + 1;
        }
        changed.then(|| self.without(&chars, &dropped))
    }

    /// How many blanks were written where one separator stands now.
    fn blanks(&self, chars: &[(usize, char)], at: usize) -> usize {
        let start_of = |at: usize| -> Option<usize> {
            chars.get(at).and_then(|(byte, _)| self.at.get(*byte)).map(|start| *start as usize)
        };
        let gap = start_of(at).zip(start_of(at + 1)).and_then(|(start, end)| self.written.get(start..end));
        gap.map_or(0, |gap| gap.chars().filter(|c| c.is_whitespace()).count())
    }

    /// The same without what is dropped.
    fn without(&self, chars: &[(usize, char)], dropped: &[bool]) -> Self {
        let mut left = Self { text: String::new(), at: Vec::new(), written: self.written };
        let kept = chars.iter().zip(dropped).filter(|(_, dropped)| !**dropped).map(|(kept, _)| *kept);
        for (byte, c) in kept {
            let start = self.at.get(byte).copied().unwrap_or_default();
            left.push(c, start as usize);
        }
        left
    }

    /// The same without the signs and blanks between Chinese characters; `None` where there are few.
    pub fn unparted(&self) -> Option<Self> {
        /// Signs that are taken for a disguise.
        const LEAST: usize = 4;
        let chars: Vec<(usize, char)> = self.text.char_indices().collect();
        let is_sign = |c: char| {
            matches!(c, ' ' | LINE | '*' | '_' | '-' | '.' | '|' | '/' | '~' | '^' | '+' | '#' | '\u{b7}')
        };
        let is_chinese = |at: Option<usize>| {
            let c = at.and_then(|at| chars.get(at)).map(|(_, c)| *c);
            c.is_some_and(|c| c.is_alphanumeric() && !is_word(c))
        };
        let drops = |at: usize| {
            chars.get(at).is_some_and(|(_, c)| is_sign(*c))
                && is_chinese(at.checked_sub(1))
                && is_chinese(Some(at + 1))
        };
        let dropped: Vec<bool> = (0..chars.len()).map(drops).collect();
        let is_disguised = dropped.iter().filter(|dropped| **dropped).count() >= LEAST;
        is_disguised.then(|| self.without(&chars, &dropped))
    }

    /// Where a stretch of the common form was written, in bytes.
    pub fn written(&self, range: &Range<usize>) -> Range<usize> {
        let start_of = |byte: usize| self.at.get(byte).map_or(self.written.len(), |start| *start as usize);
        let last = start_of(range.end.saturating_sub(1));
        let width = self.written.get(last..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        let start = start_of(range.start);
        start..(last + width).max(start)
    }
}

/// Whether a character takes no place on a screen and says nothing by itself.
pub(super) const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{1bca0}'..='\u{1bca3}' | '\u{e0100}'..='\u{e01ef}')
}

/// Whether a character is a tag: an invisible double of an ASCII character.
pub(super) const fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// The letter of a sign that is used for it.
const fn letter_of(c: char) -> Option<char> {
    Some(match c {
        '0' => 'o',
        '1' | '!' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        _ => return None,
    })
}

/// The form of a character that the phrases are written in: Latin for what looks Latin, simplified for traditional Chinese, straight
/// quotation marks and hyphens.
const fn lookalike(c: char) -> char {
    match c {
        'а' | 'ɑ' | 'α' => 'a',
        'в' | 'β' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ҽ' | 'ε' => 'e',
        'ɡ' => 'g',
        'һ' => 'h',
        'і' | 'ı' | 'ι' | 'ӏ' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'м' => 'm',
        'н' => 'h',
        'п' | 'η' => 'n',
        'о' | 'ο' | 'օ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' => 'r',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' | 'ѵ' => 'v',
        'ѡ' | 'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        'ᴢ' => 'z',
        'ᴀ' => 'a',
        'ʙ' => 'b',
        'ᴄ' => 'c',
        'ᴅ' => 'd',
        'ᴇ' => 'e',
        'ꜰ' => 'f',
        'ɢ' => 'g',
        'ʜ' => 'h',
        'ɪ' => 'i',
        'ᴊ' => 'j',
        'ᴋ' => 'k',
        'ʟ' => 'l',
        'ᴍ' => 'm',
        'ɴ' => 'n',
        'ᴏ' => 'o',
        'ᴘ' => 'p',
        'ʀ' => 'r',
        'ꜱ' => 's',
        'ᴛ' => 't',
        'ᴜ' => 'u',
        'ᴠ' => 'v',
        'ᴡ' => 'w',
        'ʏ' => 'y',
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2b9}' | '\u{2bc}' | '`' => '\'',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '無' => '无',
        '視' => '视',
        '記' => '记',
        '請' => '请',
        '說' => '说',
        '從' => '从',
        '現' => '现',
        '規' => '规',
        '則' => '则',
        '戶' => '户',
        '薦' => '荐',
        '發' => '发',
        '將' => '将',
        '對' => '对',
        '話' => '话',
        '碼' => '码',
        '別' => '别',
        '訴' => '诉',
        '應' => '应',
        '後' => '后',
        '詢' => '询',
        '問' => '问',
        '統' => '统',
        '詞' => '词',
        '輸' => '输',
        '機' => '机',
        '語' => '语',
        '憶' => '忆',
        '刪' => '删',
        '須' => '须',
        '總' => '总',
        '過' => '过',
        '們' => '们',
        '沒' => '没',
        '認' => '认',
        '傳' => '传',
        '網' => '网',
        '頁' => '页',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_looks_alike_is_alike() {
        for text in ["Ignоrе", "ｉｇｎｏｒｅ", "𝐈𝐠𝐧𝐨𝐫𝐞", "ig\u{ad}no\u{200b}re", "Ígnòré"]
        {
            assert_eq!(Folded::new(text).text, "ignore", "{text}");
        }
        assert_eq!(Folded::new("Größe\r\n指令").text, "grosse\n指令");
        assert_eq!(
            Folded::new("1gn0re pr3vious, 42 items").spelled().unwrap().text,
            "ignore previous, 42 items"
        );
        assert_eq!(Folded::new("do i g n o r e it").joined().unwrap().text, "do ignore it");
        assert_eq!(Folded::new("1gn0r3 pr3v10u5").spelled().unwrap().text, "ignore previous");
        assert_eq!(Folded::new("i g n o r e   t h e m").joined().unwrap().text, "ignore them");
        assert_eq!(Folded::new("i  g  n  o  r  e").joined().unwrap().text, "ignore");
        assert_eq!(Folded::new("ɪɢɴᴏʀᴇ").text, "ignore");
        assert_eq!(Folded::new("忽*略*所 有_指令").unparted().unwrap().text, "忽略所有指令");
        assert!(Folded::new("小*心 a*b").unparted().is_none());
        assert_eq!(Folded::new("a \n\t b  c\n \n\nd").text, "a\nb c\u{b}d");
        assert!(Folded::new("a b c and 1 2 3").joined().is_none());
        assert!(Folded::new("room 101, 2024").spelled().is_none());
    }

    proptest! {
        /// Every stretch of the common form leads back to whole characters of the text.
        #[test]
        fn the_way_back_is_to_whole_characters(text in "(?s)(.|[0-9a-z@ ]|[忽略* ]){0,60}", a in 0_usize..200, b in 0_usize..200) {
            let folded = Folded::new(&text);
            let all = [Some(folded.clone()), folded.spelled(), folded.joined(), folded.unparted()];
            for folded in all.into_iter().flatten() {
                prop_assert_eq!(folded.text.len(), folded.at.len());
                let (start, end) = (a.min(b).min(folded.text.len()), a.max(b).min(folded.text.len()));
                let written = folded.written(&(start..end));
                prop_assert!(text.get(written).is_some());
            }
        }
    }
}
