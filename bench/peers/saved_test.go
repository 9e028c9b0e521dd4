package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// saved is a report as text.
func saved(t testing.TB, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.Save(&b))
	return b.String()
}

func TestWhatIsSavedIsReadAgain(t *testing.T) {
	want := filled(t)
	got, err := Read(strings.NewReader(saved(t, want)))
	require.NoError(t, err)
	require.Equal(t, &Report{Rows: want.Rows[:2]}, got, "the row without figures is left out")
	require.Equal(t, never, got.Rows[1].Peers[0].Figures[0][0])
	require.NotEqual(t, saved(t, &Report{}), saved(t, got))
}

func TestARowThatWasCutIsNotSaved(t *testing.T) {
	r := filled(t)
	r.Rows[0].Cut = true
	require.NotContains(t, saved(t, r), "receive-128")
	require.Contains(t, saved(t, r), "silent")
}

func TestANewerRowTakesThePlaceOfTheOlder(t *testing.T) {
	r := &Report{Rows: filled(t).Rows[:2]}
	newer, cut, echo := result(t, "receive-128", "coder"), result(t, "silent", "coder"), result(t, "echo-64", "coder")
	for _, row := range []*Result{newer, cut, echo} {
		row.add(map[string][]float64{"coder": []float64{7, 7, 7}[:len(row.Columns)]})
	}
	cut.Cut = true
	old := r.Rows[1]
	r.Replace(&Report{Rows: []*Result{echo, cut, newer, result(t, "gap", "nats")}})
	require.Equal(t, []*Result{newer, echo, old}, r.Rows, "in the order of all rows")
}

func TestAFileThatWasNotSavedIsAnError(t *testing.T) {
	good := saved(t, filled(t))
	for _, w := range []struct{ old, new, want string }{
		{good, "", "EOF"},
		{good, `{"Rows": []}`, "there are no rows"},
		{good, `{"Rows": [null]}`, "row 0 is null"},
		{good, `{"Figures": 1}`, `unknown field "Figures"`},
		{`"receive-128"`, `"receive-129"`, `there is no row "receive-129" (is it "receive-128"?): there are receive-128, `},
		{`"gws"`, `"gwss"`, `row receive-128: there is no peer "gwss" (is it "gws"?): there are coder, `},
		{`"allocations"`, `"allocs"`, "row receive-128: its columns are no longer measured: measure it again"},
		{`110`, "null", "row receive-128: coder (A/A) has no figure in one of the rounds"},
		{`"Name": "coder",`, `"Name": "gorilla",`, "row receive-128: coder, the base of the ratios, is missing"},
	} {
		_, err := Read(strings.NewReader(strings.Replace(good, w.old, w.new, 1)))
		require.ErrorContains(t, err, w.want)
	}
	r := filled(t)
	r.Rows[0].Peers[1].Figures[0] = Spread{1}
	_, err := Read(strings.NewReader(saved(t, r)))
	require.EqualError(t, err, "row receive-128: coder (A/A) has figures of 1 instead of 2 rounds")
	r.Rows[0].Peers[1].Figures = nil
	_, err = Read(strings.NewReader(saved(t, r)))
	require.EqualError(t, err, "row receive-128: coder (A/A) has 0 figures for 3 columns")
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "peers.json")
	_, err := ReadFile(name)
	require.EqualError(t, err, "read peers "+name+": no such file or directory")
	require.NoError(t, os.WriteFile(name, []byte("{}"), 0o600))
	_, err = ReadFile(name)
	require.EqualError(t, err, "read peers "+name+": there are no rows")
}

func FuzzRead(f *testing.F) {
	f.Add(saved(f, filled(f)))
	f.Add(strings.ReplaceAll(saved(f, filled(f)), "110", "1e300"))
	f.Add(strings.ReplaceAll(saved(f, filled(f)), "110", "-5"))
	f.Add(`{"Rows": [{"Name": "idle-max", "Columns": [], "Peers": [null]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		require.NoError(t, r.Write(&bytes.Buffer{}))
		require.NotEmpty(t, r.Markdown())
		if p, err := r.Picture(); err == nil {
			require.NoError(t, p.WriteSVG(&bytes.Buffer{}))
		}
		again, err := Read(strings.NewReader(saved(t, r)))
		require.NoError(t, err)
		require.Equal(t, saved(t, r), saved(t, again))
	})
}
