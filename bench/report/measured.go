package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// measured is what the files of "bench herd" say: lab.WriteSeries and
// lab.WriteRuns have written them.
type measured struct {
	series []measuredSeries
	runs   []measuredRun // none if there was no such file
	local  int           // dials for which the machine had no socket
}

// measuredSeries is one run in steps of fleet.Bin.
type measuredSeries struct {
	policy, round string
	dials, up     []float64
	rejected      float64 // connections that the server reset
}

// measuredRun is what came of one run; times are seconds, +Inf where they were not
// reached.
type measuredRun struct {
	policy, round               string
	scene                       string // of lab.Scenes; empty in files from before there were any
	n, backlog                  int
	ideal, outage               float64
	t50, t99, t100, watched     float64
	peak, peakIn, dials, wasted float64
	recovered                   bool
}

// readMeasured reads the files of one measurement, of either kind, which it tells by their
// first lines: one has series, and there may be one that has runs.
func readMeasured(files []string) (*measured, error) {
	m := &measured{}
	for _, name := range files {
		if err := m.readFile(name); err != nil {
			return nil, fmt.Errorf("read herd %s: %w", name, err)
		}
	}
	if len(m.series) == 0 {
		return nil, fmt.Errorf(`read herd %s: there are no series, which "bench herd -series FILE" writes`, strings.Join(files, ", "))
	}
	return m, nil
}

func (m *measured) readFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return errors.Unwrap(err) // the caller names the file
	}
	defer f.Close()
	return m.read(f)
}

func (m *measured) read(r io.Reader) error {
	rows, err := csv.NewReader(r).ReadAll()
	switch {
	case err != nil:
		return err
	case len(rows) < 2:
		return errors.New("the file has no rows")
	}
	t := &sheet{head: rows[0]}
	var each func(*sheet)
	switch {
	case slices.Contains(t.head, "t_s") && len(m.series) == 0:
		each = m.addBin
	case slices.Contains(t.head, "t99_s") && len(m.runs) == 0:
		each = m.addRun
	case slices.Contains(t.head, "t_s") || slices.Contains(t.head, "t99_s"):
		return errors.New("the measurement has another file of this kind already: give each measurement a -herd of its own")
	default:
		return errors.New(`"bench herd" does not write such a file`)
	}
	for _, row := range rows[1:] {
		t.row = row
		each(t)
	}
	return t.err
}

// addBin adds a line of a series to that which it belongs to.
func (m *measured) addBin(t *sheet) {
	policy, round := t.text("policy"), t.text("round")
	last := len(m.series) - 1
	if last < 0 || m.series[last].policy != policy || m.series[last].round != round {
		m.series = append(m.series, measuredSeries{policy: policy, round: round})
		last++
	}
	s := &m.series[last]
	s.dials, s.up = append(s.dials, t.number("dials")), append(s.up, t.number("up"))
	s.rejected += t.number("rejected")
}

func (m *measured) addRun(t *sheet) {
	if t.text("cut") == "true" {
		return
	}
	ideal := t.number("ideal_s")
	m.local += int(t.number("local_failures"))
	scene := ""
	if slices.Contains(t.head, "scene") {
		scene = t.text("scene")
	}
	m.runs = append(m.runs, measuredRun{
		scene:  scene,
		policy: t.text("policy"), round: t.text("round"), n: int(t.number("n")), backlog: int(t.number("backlog")),
		ideal: ideal, outage: t.number("outage_s"),
		t50: t.moment("t50_s"), t99: t.moment("t99_s"), t100: t.moment("t100_s"), watched: t.number("watched_s"),
		peak: t.number("peak_dials_100ms"), peakIn: t.number("peak_arrivals_100ms"),
		dials: t.number("dials"), wasted: t.number("wasted"),
		recovered: t.text("recovered") == "true",
	})
}

// n is the size of the herd: as a run says, else the most that were ever up.
func (m *measured) n() int {
	if len(m.runs) > 0 {
		return max(1, m.runs[0].n)
	}
	most := 1.0
	for _, s := range m.series {
		most = max(most, slices.Max(s.up))
	}
	return int(most)
}

// run returns the run that a series is of, nil if it is not known or was cut.
func (m *measured) run(s measuredSeries) *measuredRun {
	i := slices.IndexFunc(m.runs, func(r measuredRun) bool { return r.policy == s.policy && r.round == s.round })
	if i < 0 {
		return nil
	}
	return &m.runs[i]
}

// first returns the first round of each policy.
func (m *measured) first() []measuredSeries {
	var first []measuredSeries
	for _, s := range m.series {
		if !slices.ContainsFunc(first, func(f measuredSeries) bool { return f.policy == s.policy }) {
			first = append(first, s)
		}
	}
	return first
}

// sheet is a row of a CSV file and the names of its columns. It keeps its first error.
type sheet struct {
	head, row []string
	err       error
}

func (t *sheet) text(column string) string {
	i := slices.Index(t.head, column)
	if i < 0 || i >= len(t.row) {
		if t.err == nil {
			t.err = fmt.Errorf("the file has no column %s", column)
		}
		return ""
	}
	return t.row[i]
}

func (t *sheet) number(column string) float64 {
	text := t.text(column)
	x, err := strconv.ParseFloat(text, 64)
	if t.err == nil && (err != nil || math.IsNaN(x) || math.IsInf(x, 0)) {
		t.err = fmt.Errorf("%s %q is not a number", column, text)
	}
	return x
}

// moment is a time in seconds, +Inf if there is none.
func (t *sheet) moment(column string) float64 {
	if t.text(column) == "" {
		return math.Inf(1)
	}
	return t.number(column)
}
