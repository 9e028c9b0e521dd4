package report

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lab"
)

// results are two rounds of one policy and one of another, which does not recover.
func results() []*lab.Result {
	one := func(policy string, round int, t100 time.Duration) *lab.Result {
		r := &lab.Result{
			Client: policy, Round: round, N: 40, Ideal: 2 * time.Second, Outage: time.Second,
			T50: time.Second, T99: t100, T100: t100, Watched: 5 * time.Second, Up: 40, Backlog: 4096,
			Peak: 30, PeakIn: 7, Dials: 1.5, Wasted: 0.25,
			Bins: []lab.Bin{{Dials: 30}, {Dials: 12, Admitted: 7, Up: 20}, {Dials: 1, Up: 40}},
		}
		if t100 == fleet.Never {
			r.Up, r.Bins[2].Up = 10, 10
		}
		return r
	}
	return []*lab.Result{one("redial", 1, 2*time.Second), one("redial", 2, 4*time.Second), one("fixed", 1, fleet.Never)}
}

// written writes results as "bench herd" does.
func written(t *testing.T, all []*lab.Result) (series, runs string) {
	t.Helper()
	var s, r bytes.Buffer
	require.NoError(t, lab.WriteSeries(&s, all))
	require.NoError(t, lab.WriteRuns(&r, all))
	dir := t.TempDir()
	series, runs = filepath.Join(dir, "series.csv"), filepath.Join(dir, "runs.csv")
	require.NoError(t, os.WriteFile(series, s.Bytes(), 0o600))
	require.NoError(t, os.WriteFile(runs, r.Bytes(), 0o600))
	return series, runs
}

func TestWhatTheRealHerdWroteIsDrawn(t *testing.T) {
	series, runs := written(t, results())
	f, err := drawMeasured("real", []string{runs, series})
	require.NoError(t, err)
	require.Equal(t, "N = 40, 20 handshakes/s, back after 1.0 s; a backlog of 4,096. Measured on real sockets", f.Title)
	require.Empty(t, f.Text)
	require.Equal(t, [][]string{
		{"redial", "1.0", "3.0", "3.0", "1.50", "30", "7", "1.5", "0.2", "2 of 2"},
		{"fixed", "1.0", "not within 5s", "not within 5s", "not within 5s", "30", "7", "1.5", "0.2", "0 of 1"},
	}, f.Tables[0].Rows)
	for _, row := range f.Tables[0].Rows {
		require.Len(t, row, len(f.Tables[0].Head))
	}
	require.Equal(t, "real_dials", f.Pictures[0].Name)
	require.Equal(t, "redial: peak 30; all back after 3.0 s", f.Pictures[0].Panels[0].Title)
	require.Equal(t, "fixed: peak 30; 25 % up at the end", f.Pictures[0].Panels[1].Title)
	require.Equal(t, "limit on a dial: 2 s, chosen here (it has none of its own)", f.Pictures[0].Panels[1].Note, "the lab's, not the report's")
	for _, p := range f.Pictures {
		var svg bytes.Buffer
		require.NoError(t, p.WriteSVG(&svg))
		texts := sound(t, p.Name, svg.Bytes())
		require.Contains(t, texts, "redial")
		require.Contains(t, texts, "fixed")
		require.Contains(t, texts, "server away")
	}
}

func TestTheSeriesAloneAreEnough(t *testing.T) {
	all := results()
	all[0].Bins[0].Rejected = 1
	series, _ := written(t, all)
	f, err := drawMeasured("real_2", []string{series})
	require.NoError(t, err)
	require.Equal(t, "N = 40; the server resets connections for which it has no room. Measured on real sockets", f.Title)
	require.Empty(t, f.Tables)
	require.Equal(t, "real_2_up", f.Pictures[1].Name)
	require.Equal(t, "redial: peak 30", f.Pictures[0].Panels[0].Title)
}

func TestTwoMeasurementsAreTwoFiguresWithTheirOwnFiles(t *testing.T) {
	slow(t)
	series, runs := written(t, results())
	dir := t.TempDir()
	require.NoError(t, Write(context.Background(), dir, Options{Only: []string{"real"}, Herd: [][]string{{series, runs}, {series}}}))
	for _, name := range []string{"real_dials.svg", "real_up.svg", "real_2_dials.svg", "real_2_up.svg"} {
		require.FileExists(t, filepath.Join(dir, name))
	}
	selfContained(t, html(t, dir), 4)
}

func TestWhatIsNotKnownIsNotShown(t *testing.T) {
	all := results()[:1]
	all[0].Ideal, all[0].Backlog = 0, 0 // a server of the user's
	series, runs := written(t, all)
	f, err := drawMeasured("real", []string{series, runs})
	require.NoError(t, err)
	require.Equal(t, "N = 40, back after 1.0 s. Measured on real sockets", f.Title)
	require.Equal(t, "-", f.Tables[0].Rows[0][4])
	for _, s := range f.Pictures[1].Legend {
		require.NotEqual(t, ideal.Name, s.Name)
	}
}

func TestASceneOfSeveralOutagesHasNoShade(t *testing.T) {
	for scene, want := range map[lab.Scene]string{
		lab.Hang: "N = 40, 20 handshakes/s, accepts and does not answer at first, answers new connections after 1.0 s; a backlog of 4,096. Measured on real sockets",
		lab.Flap: "N = 40, 20 handshakes/s, up and away in turn, back for good after 1.0 s; a backlog of 4,096. Measured on real sockets",
	} {
		all := results()[:1]
		all[0].Scene = scene
		series, runs := written(t, all)
		m, err := readMeasured([]string{series, runs})
		require.NoError(t, err)
		require.Equal(t, want, m.note())
		require.Len(t, m.shade(), map[lab.Scene]int{lab.Hang: 1}[scene])
	}
}

func TestARunThatWasCutIsNoResult(t *testing.T) {
	all := results()
	all[1].Cut = true
	series, runs := written(t, all)
	f, err := drawMeasured("real", []string{series, runs})
	require.NoError(t, err)
	require.Equal(t, "1 of 1", f.Tables[0].Rows[0][9])
}

func TestAMachineWithoutSocketsIsSaid(t *testing.T) {
	all := results()
	all[0].Local = 3
	series, runs := written(t, all)
	f, err := drawMeasured("real", []string{series, runs})
	require.NoError(t, err)
	require.Equal(t, []string{"This is no measurement: the machine had no socket for 3 dials."}, f.Text)
}

func TestFilesThatCannotBeReadAreErrors(t *testing.T) {
	series, runs := written(t, results())
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "x.csv")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	good, err := os.ReadFile(series)
	require.NoError(t, err)
	for _, w := range []struct {
		files []string
		want  string
	}{
		{[]string{runs}, "there are no series"},
		{[]string{series, series}, "the measurement has another file of this kind already"},
		{[]string{runs, runs, series}, "the measurement has another file of this kind already"},
		{[]string{file("")}, "the file has no rows"},
		{[]string{file("a,b\n1,2\n")}, `"bench herd" does not write such a file`},
		{[]string{file("policy,round,t_s\nx,1,0.0\n")}, "the file has no column dials"},
		{[]string{file(strings.Replace(string(good), "0.1,12", "0.1,dozen", 1))}, `dials "dozen" is not a number`},
		{[]string{file(strings.Replace(string(good), "0.1,12", "0.1,NaN", 1))}, `dials "NaN" is not a number`},
		{[]string{file(string(good) + "redial,1\n")}, "wrong number of fields"},
	} {
		_, err := readMeasured(w.files)
		require.ErrorContains(t, err, "read herd /", w.want)
		require.ErrorContains(t, err, w.want)
	}
}

func FuzzMeasured(f *testing.F) {
	for _, write := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return lab.WriteSeries(b, results()) },
		func(b *bytes.Buffer) error { return lab.WriteRuns(b, results()) },
	} {
		var b bytes.Buffer
		require.NoError(f, write(&b))
		f.Add(b.String())
	}
	f.Add("policy,round,t_s,dials,rejected,up\nx,1,0,-5,0,-1\n")
	f.Fuzz(func(t *testing.T, text string) {
		m := &measured{}
		if m.read(strings.NewReader(text)) != nil {
			return
		}
		require.True(t, len(m.series)+len(m.runs) > 0 || strings.Contains(text, "true"), "only runs that were cut may be nothing")
		m.table()
		m.note()
		if len(m.series) == 0 {
			return
		}
		for _, p := range m.first() {
			require.NotEmpty(t, p.dials)
			require.Len(t, p.up, len(p.dials))
		}
		require.NoError(t, m.dials("x").WriteSVG(&bytes.Buffer{}))
		require.NoError(t, m.up("x").WriteSVG(&bytes.Buffer{}))
	})
}
