package readers

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	cases   = flag.Int("cases", 10_000, "how many streams")
	seed    = flag.Uint64("seed", 1, "the seed of the first stream")
	lasting = flag.Duration("for", 0, "run as many streams as fit into this time; default with REDIAL_LONG=1: an hour")
)

// trial counts what the streams of a test have shown.
type trial struct {
	used  map[*row]int   // how often a client has needed a row
	by    map[rule]int   // how many streams a rule has ended
	ends  map[string]int // how often conn.WebSocket ended in each class of ending
	kinds map[string]int // how often clients differed, by the kind of the difference
}

// difference is how a client's reading of a stream differs from what the judge and the table allow.
type difference struct {
	kind string // "": there is no difference
	text string
}

// differs lets a client read a stream, and compares the reading with the verdict of the judge.
func (tr *trial) differs(s stream, name string, read func(*script) reading) difference {
	if name == "gorilla" && s.takeover { // gorilla does not support context takeover
		return difference{}
	}
	data := s.bytes()
	got := read(newScript(s.conditions, slices.Clone(data), s.cuts))
	var needed []*row
	j := judge{conditions: s.conditions, ignores: func(by rule) bool {
		r, ignored := ignores(name, by)
		if r != nil && ignored && !slices.Contains(needed, r) {
			needed = append(needed, r)
		}
		return ignored
	}}
	want := j.run(data)
	why := fits(name, got, want, &needed)
	for _, r := range rowsOf(name) { // rows which say that the client holds a rule that it need not hold
		if slices.Contains(want.by, r.by) && slices.Contains(lenient, r.by) {
			needed = append(needed, r)
		}
	}
	for _, r := range needed {
		tr.used[r]++
	}
	if name == ours {
		tr.ends[got.class]++
		for _, by := range want.by {
			tr.by[by]++
		}
	}
	if why == "" {
		return difference{}
	}
	return difference{fmt.Sprintf("%s %s %q", name, got.ending, want.by), why}
}

// fits compares a reading with the verdict. If a row of the table allows the difference, fits adds the row to
// needed. If nothing allows it, fits returns the difference as text.
func fits(name string, got reading, want verdict, needed *[]*row) (why string) {
	alike := slices.Equal(got.messages, want.messages)
	if alike && slices.Contains(want.ends, got.ending) && pongsFit(got, want) {
		return ""
	}
	for _, r := range rowsOf(name) {
		if !slices.Contains(want.by, r.by) {
			continue
		}
		began := len(got.messages) >= len(want.messages) && slices.Equal(got.messages[:len(want.messages)], want.messages)
		more := len(got.messages) - len(want.messages)
		if began && (r.free || r.half && more == 1 && got.said == none) || alike && r.ended(got.ending, want) && pongsFit(got, want) {
			*needed = append(*needed, r)
			return ""
		}
	}
	return fmt.Sprintf("%s: %v\nwanted: %v\nmessages %.200q\nwanted   %.200q\npongs %d, wanted %d", name, got, want, got.messages, want.messages, len(got.pongs), len(want.pongs))
}

// pongsFit compares pongs. conn.WebSocket sends pongs in the background, so the last ones may be missing when the
// server has hung up.
func pongsFit(got reading, want verdict) bool {
	if got.said == none || got.class == "panic" || want.early {
		return len(got.pongs) <= len(want.pongs) && slices.Equal(got.pongs, want.pongs[:len(got.pongs)])
	}
	return slices.Equal(got.pongs, want.pongs)
}

// The comment of the package says how to run this test with more streams.
func TestFourClientsReadTheSame(t *testing.T) {
	tr := &trial{used: map[*row]int{}, by: map[rule]int{}, ends: map[string]int{}, kinds: map[string]int{}}
	begun := time.Now()
	if *lasting == 0 && os.Getenv("REDIAL_LONG") == "1" {
		*lasting = time.Hour
	}
	n := 0
	for ; *lasting == 0 && n < *cases || time.Since(begun) < *lasting; n++ {
		s := newStream(*seed + uint64(n))
		hung := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("seed %d hangs: %s", *seed+uint64(n), s)) })
		for _, c := range clients {
			d := tr.differs(s, c.name, c.read)
			if d.kind == "" {
				continue
			}
			if tr.kinds[d.kind]++; tr.kinds[d.kind] == 1 {
				small := tr.shrink(s, c.name, c.read)
				d = tr.differs(small, c.name, c.read)
				t.Errorf("%s\n%s\ngo test -run %s . -cases 1 -seed %d", d.text, small, t.Name(), *seed+uint64(n))
			}
		}
		hung.Stop()
	}
	for kind, n := range tr.kinds {
		t.Logf("%8d  differ: %s", n, kind)
	}
	t.Logf("%d streams in %v, which ended: %v", n, time.Since(begun).Round(time.Second), tr.ends)
	tr.report(t, *lasting > 0 || *cases >= 10_000)
}

// report logs how many streams each rule has ended, and how many needed each row of the table. After many streams
// no rule and no row may have the count 0.
func (tr *trial) report(t *testing.T, many bool) {
	for _, by := range rules {
		t.Logf("%8d  %s", tr.by[by], by)
		if many && tr.by[by] == 0 && !slices.Contains(lenient, by) {
			t.Errorf("no stream ends by %s", by)
		}
	}
	for i := range table {
		r := &table[i]
		t.Logf("%8d  %s, %s: %s", tr.used[r], r.client, r.by, r.why)
		if many && tr.used[r] == 0 {
			t.Errorf("no stream needs this row: %s, %s", r.client, r.by)
		}
	}
}

func (s stream) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v, pieces of %v", s.conditions, s.cuts)
	for _, f := range s.frames {
		fmt.Fprintf(&b, "\n  %.60x", f)
		if len(f) > 60 {
			fmt.Fprintf(&b, "... (%d bytes)", len(f))
		}
	}
	return b.String()
}

// shrink returns a stream with fewer frames on which the client still differs. The stream comes in one piece, if
// the client differs then too.
func (tr *trial) shrink(s stream, name string, read func(*script) reading) stream {
	still := func(s stream) bool { return tr.differs(s, name, read).kind != "" }
	for again := true; again; {
		again = false
		for i := range s.frames {
			smaller := s
			if smaller.frames = slices.Delete(slices.Clone(s.frames), i, i+1); still(smaller) {
				s, again = smaller, true
				break
			}
		}
	}
	if whole := (stream{s.conditions, s.frames, nil}); still(whole) {
		return whole
	}
	return s
}
