package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/table"
)

// counting is an experiment that counts to n, and then fails.
type counting struct {
	n      int
	fails  error
	words  []string
	counts table.Table
}

func (x *counting) Flags(f *Flags) {
	x.n = 2
	f.Count(&x.n, 1, "n", "how far to count")
	SomeOf(f, &x.words, "word", "one", "words", []string{"one", "two"}, pick.Itself)
	f.File("words", "write the words", func(w io.Writer) error { _, err := io.WriteString(w, x.words[0]); return err })
	f.List("nothing", func(w io.Writer) { _, _ = io.WriteString(w, "nothing\n") })
	f.Check(func() error {
		if f.Given("n") && x.n == 7 {
			return errors.New("not 7")
		}
		return nil
	})
}

func (x *counting) Run(context.Context, *Console) error {
	x.counts = table.Table{{"count"}}
	for range x.n {
		x.counts.Row("more")
	}
	return x.fails
}

func (x *counting) Table() (table.Table, string) { return x.counts, "that is all" }

func (x *counting) Chart() *chart.Picture { return &chart.Picture{Title: "counts"} }

func try(fails error, args ...string) (out, errs string, code int) {
	p := Program{Name: "count", Commands: []Command{{New: func() Experiment { return &counting{fails: fails} }}}}
	return p.Try(context.Background(), args...)
}

func TestAnExperimentShowsItsTable(t *testing.T) {
	out, errs, code := try(nil)
	require.Zero(t, code, errs)
	require.Equal(t, "  count\n   more\n   more\nthat is all\n", out)
}

func TestWhatIsWrongIsSaidBeforeAnythingRuns(t *testing.T) {
	for want, args := range map[string][]string{
		`count: invalid value "0" for flag -n: must be a whole number, at least 1; "count -h" lists the flags`: {"-n", "0"},
		`count: there is no -word "three": there are one, two`:                                                 {"-word", "one,three"},
		`count: there is no -word "": there are one, two`:                                                      {"-word", ""},
		`count: not 7`: {"-n", "7"},
		`count: -words and -svg cannot both go to standard output`: {"-words", "-", "-svg", "-"},
		`count: open /nowhere/x: no such file or directory`:        {"-csv", "/nowhere/x"},
	} {
		out, errs, code := try(nil, args...)
		require.Equal(t, ExitUsage, code)
		require.Equal(t, want+"\n", errs)
		require.Empty(t, out)
	}
}

func TestTheNamesAreInTheFirstLineOfTheHelp(t *testing.T) {
	f := newFlags()
	var one string
	var some []string
	OneOf(f, &one, "one", "a", "which\na: the first", []string{"a", "b"}, pick.Itself)
	SomeOf(f, &some, "some", "", "which", []string{"a", "b"}, pick.Itself)
	require.Equal(t, "which: a, b\na: the first", f.Lookup("one").Usage)
	require.Equal(t, "which, separated by commas, or all", f.Lookup("some").Usage)
}

func TestTheTableMakesRoomForAFileOnStandardOutput(t *testing.T) {
	out, errs, code := try(nil, "-words", "-", "-word", "all")
	require.Zero(t, code)
	require.Equal(t, "one", out)
	require.Contains(t, errs, "that is all\n")
}

func TestAFailedRunIsShownAndNotDrawn(t *testing.T) {
	csv, svg := filepath.Join(t.TempDir(), "x.csv"), filepath.Join(t.TempDir(), "x.svg")
	out, errs, code := try(ErrInterrupted, "-csv", csv, "-svg", svg)
	require.Equal(t, ExitInterrupted, code)
	require.Contains(t, out, "that is all")
	require.Equal(t, "count: interrupted; the results until then are kept\n", errs)
	written, err := os.ReadFile(csv)
	require.NoError(t, err)
	require.Equal(t, "count\nmore\nmore\n", string(written))
	drawn, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Empty(t, drawn)
}

func TestAListIsNoRun(t *testing.T) {
	out, _, code := try(errors.New("it ran"), "-list")
	require.Zero(t, code)
	require.Equal(t, "nothing\n", out)
}

// cut is an experiment that was interrupted before it had anything.
type cut struct{}

func (cut) Flags(*Flags) {}

func (cut) Run(context.Context, *Console) error { return ErrInterrupted }

func TestAnInterruptedRunWithoutAResultSaysSo(t *testing.T) {
	p := Program{Name: "count", Commands: []Command{{New: func() Experiment { return cut{} }}}}
	out, errs, code := p.Try(t.Context())
	require.Equal(t, ExitInterrupted, code)
	require.Empty(t, out)
	require.Equal(t, "count: interrupted before there was a result\n", errs)
}

func TestAHelpIsFolded(t *testing.T) {
	var b strings.Builder
	fold(&b, "  -n n", 10, "how many\n\n"+strings.Repeat("word ", 20)+"\nlast")
	require.Equal(t, "  -n n    how many\n          "+strings.TrimSpace(strings.Repeat("word ", 18))+"\n          word word\n          last\n", b.String())
	b.Reset()
	fold(&b, "  -a-long-name n", 10, "what")
	require.Equal(t, "  -a-long-name n what\n", b.String())
	out, _, code := try(nil, "-h")
	require.Zero(t, code)
	require.Contains(t, out, "usage: count [flags]\n\n  -csv file ")
	require.Contains(t, out, "\n  -n n                how far to count (default 2)\n")
	require.Contains(t, out, "\n  -word name          words, separated by commas, or all (default one)\n")
}

func TestHelpWithoutAModelListsTheModels(t *testing.T) {
	p := Program{Name: "p", Commands: []Command{{Name: "other"}, Sim([]Command{
		{Name: "one", Summary: "the first", Example: "-n 3", New: func() Experiment { return &counting{} }}, {Name: "two", Summary: "the second"},
	})}}
	out, _, code := p.Try(t.Context(), "sim", "-h")
	require.Zero(t, code)
	require.Equal(t, "usage: p sim -model MODEL [flags]; \"p sim -model MODEL -h\" lists the flags of a model\nwithout -model: one\n\n  one        the first\n  two        the second\n", out)
	out, _, code = p.Try(t.Context(), "sim", "-h", "-model", "one")
	require.Zero(t, code)
	require.Contains(t, out, "usage: p sim -model one [flags]\nthe first\nexample: p sim -model one -n 3\n\n  -csv file")
}
