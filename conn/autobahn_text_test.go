package conn

import (
	"fmt"
	"strings"
	"testing"
)

// Group 6 of Autobahn: texts that are UTF-8, or not.

// utf8Text is a text, and whether it is UTF-8.
type utf8Text struct {
	said  string
	valid bool
}

func validTexts(texts ...string) []utf8Text   { return judged(true, texts) }
func invalidTexts(texts ...string) []utf8Text { return judged(false, texts) }

func judged(valid bool, texts []string) (all []utf8Text) {
	for _, said := range texts {
		all = append(all, utf8Text{said, valid})
	}
	return all
}

// utf8Texts are the texts of groups 6.5 to 6.23, in order. Most are from Markus Kuhn's
// "UTF-8 decoder capability and stress test".
func utf8Texts() [][]utf8Text {
	incomplete := []string{"\xc0", "\xe0\x80", "\xf0\x80\x80", "\xf8\x80\x80\x80", "\xfc\x80\x80\x80\x80",
		"\xdf", "\xef\xbf", "\xf7\xbf\xbf", "\xfb\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf"}
	return [][]utf8Text{
		validTexts("hello$world", "hello\xc2\xa2world", "hello\xe2\x82\xacworld", "hello\xf0\xa4\xad\xa2world", greek),
		prefixes(greek, 2, 5, 7, 9, 11),
		validTexts("\x00", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80"),
		invalidTexts("\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80"),
		validTexts("\x7f", "\xdf\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf"),
		invalidTexts("\xf7\xbf\xbf\xbf", "\xfb\xbf\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf\xbf"),
		append(validTexts("\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd", "\xf4\x8f\xbf\xbf"), invalidTexts("\xf4\x90\x80\x80")...),
		invalidTexts("\x80", "\xbf", "\x80\xbf", "\x80\xbf\x80", "\x80\xbf\x80\xbf", "\x80\xbf\x80\xbf\x80", "\x80\xbf\x80\xbf\x80\xbf", span8(0x80, 0xbf, "")),
		invalidTexts(span8(0xc0, 0xdf, " "), span8(0xe0, 0xef, " "), span8(0xf0, 0xf7, " "), span8(0xf8, 0xfb, " "), span8(0xfc, 0xfd, " ")),
		invalidTexts(incomplete...),
		invalidTexts(strings.Join(incomplete, "")),
		invalidTexts("\xfe", "\xff", "\xfe\xfe\xff\xff"),
		invalidTexts("\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xf8\x80\x80\x80\xaf", "\xfc\x80\x80\x80\x80\xaf"),
		invalidTexts("\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf8\x87\xbf\xbf\xbf", "\xfc\x83\xbf\xbf\xbf\xbf"),
		invalidTexts("\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf8\x80\x80\x80\x80", "\xfc\x80\x80\x80\x80\x80"),
		invalidTexts("\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbe\x80", "\xed\xbf\xbf"),
		invalidTexts("\xed\xa0\x80\xed\xb0\x80", "\xed\xa0\x80\xed\xbf\xbf", "\xed\xad\xbf\xed\xb0\x80", "\xed\xad\xbf\xed\xbf\xbf",
			"\xed\xae\x80\xed\xb0\x80", "\xed\xae\x80\xed\xbf\xbf", "\xed\xaf\xbf\xed\xb0\x80", "\xed\xaf\xbf\xed\xbf\xbf"),
		validTexts(nonCharacters()...),
		validTexts("\xef\xbf\xb9", "\xef\xbf\xba", "\xef\xbf\xbb", "\xef\xbf\xbc", "\xef\xbf\xbd", "\xef\xbf\xbe", "\xef\xbf\xbf"),
	}
}

// prefixes are the prefixes of said, of which those of the given lengths are valid.
func prefixes(said string, valid ...int) (all []utf8Text) {
	for i := range len(said) {
		all = append(all, utf8Text{said[:i+1], i+1 == valid[0]})
		if i+1 == valid[0] {
			valid = valid[1:]
		}
	}
	return all
}

// span8 is all bytes from the first to before the end, each followed by behind.
func span8(first, end byte, behind string) (all string) {
	for ; first < end; first++ {
		all += string([]byte{first}) + behind
	}
	return all
}

// nonCharacters are the last two code points of each plane.
func nonCharacters() (all []string) {
	for plane := range rune(17) {
		all = append(all, string(plane<<16|0xfffe), string(plane<<16|0xffff))
	}
	return all
}

// texts are the cases of group 6, for a client that checks UTF-8 or does not.
func texts(check bool) (cs []autobahn) {
	umlauts := "Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!"
	edited := greek + "\xed\xa0\x80edited"
	cs = []autobahn{
		passes("6.1.1", 0, frame(fin|text, ""), said(text, "")),
		passes("6.1.2", 0, frame(text, "")+frame(0, "")+frame(fin, ""), said(text, "")),
		passes("6.1.3", 0, frame(text, "")+frame(0, "middle frame payload")+frame(fin, ""), said(text, "middle frame payload")),
		passes("6.2.1", 0, frame(fin|text, umlauts), said(text, umlauts)),
		passes("6.2.2", 0, frame(text, umlauts[:13])+frame(fin, umlauts[13:]), said(text, umlauts)),
		passes("6.2.3", 0, inFragments(text, umlauts, 1), said(text, umlauts)),
		passes("6.2.4", 0, inFragments(text, greek, 1), said(text, greek)),
		utf8Text{edited, false}.sent("6.3.1", check, frame(fin|text, edited)),
		utf8Text{edited, false}.sent("6.3.2", check, inFragments(text, edited, 1)),
	}
	cs = append(cs, failFast(check)...)
	for i, all := range utf8Texts() {
		for j, u := range all {
			cs = append(cs, u.sent(fmt.Sprintf("6.%d.%d", i+5, j+1), check, frame(fin|text, u.said)))
		}
	}
	return cs
}

// sent is the case in which u is sent as these frames.
func (u utf8Text) sent(number string, check bool, frames string) autobahn {
	if u.valid || !check {
		return passes(number, 0, frames, said(text, u.said))
	}
	return ends(number, 0, frames, badUTF8)
}

// failFast are the cases of group 6.4, which are about when a text is refused. The pongs
// show that the frames before them have been accepted.
func failFast(check bool) (cs []autobahn) {
	all, asks, answers := greek+"\xf4\x90\x80\x80edited", frame(fin|ping, ""), []string{said(pong, "")}
	for i, cut := range [][2]int{{11, 15}, {12, 13}} {
		a, b, c := all[:cut[0]], all[cut[0]:cut[1]], all[cut[1]:]
		frames := []step{{frame(text, a) + asks, answers}, {frame(0, b) + asks, answers}}
		chops := []step{{frame(fin|text, all)[:2] + a, nil}, {b, nil}}
		for j, steps := range [][]step{frames, chops} {
			last := utf8Text{all, false}.sent("", check, []string{frame(fin, c), c}[j])
			cs = append(cs, autobahn{fmt.Sprintf("6.4.%d", i+2*j+1), append(steps, last.steps...), 0,
				"the suite also accepts that a text is refused when it is complete, as here; in the middle is better in its eyes"})
		}
	}
	return cs
}

// A rune may lie in several fragments, and so may what is no rune.
func TestTextsInFragmentsOfOneByteAreChecked(t *testing.T) {
	var cs []autobahn
	for i, all := range utf8Texts() {
		for j, u := range all {
			cs = append(cs, u.sent(fmt.Sprintf("6.%d.%d", i+5, j+1), true, inFragments(text, u.said, 1)))
		}
	}
	runCases(t, cs, checked)
}
