package policytest

import (
	"encoding/csv"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Drawn is a policy whose waits are compared with the rows of a reference.
type Drawn struct {
	Policy backoff.Policy
	First  int           // the row of the first wait; rows before it correspond to no wait of Policy
	Cap    time.Duration // what counts as being at the cap
	Unit   time.Duration // of the reference, or 0 for a second
	Chain  bool          // a wait depends on the one before
	Soft   bool          // a wait beyond the cap counts as being at it
}

// moments are those of the waits that were drawn.
type moments struct {
	n, sum, squares, atCap float64
	least, most            float64
}

func (m *moments) add(wait, unit, limit time.Duration, soft bool) {
	x := float64(wait) / float64(unit)
	m.n++
	m.sum += x
	m.squares += x * x
	if m.n == 1 {
		m.least, m.most = x, x
	}
	m.least, m.most = min(m.least, x), max(m.most, x)
	if limit > 0 && (wait == limit || soft && wait > limit) {
		m.atCap++
	}
}

func (m *moments) mean() float64 { return m.sum / m.n }
func (m *moments) sd() float64   { return math.Sqrt(max(m.squares/m.n-m.mean()*m.mean(), 0)) }

// TestMoments fails if the waits of a policy do not have the moments in file, or if file has other policies.
// The key of a policy is its name in file, whose columns are: name, number of the wait, parameters, mean,
// deviation, least and greatest wait, share of the waits at the cap, and how the row was made ("exact", or by
// drawing).
func TestMoments(t *testing.T, file string, policies map[string]Drawn) {
	rows := map[string][]row{}
	for _, fields := range records(t, file) {
		if n, err := strconv.Atoi(fields[1]); err == nil {
			rows[fields[0]] = append(rows[fields[0]], parse(t, n, fields))
		}
	}
	if len(policies) != len(rows) {
		t.Errorf("%d policies, and %d in %s", len(policies), len(rows), file)
	}
	for name, p := range policies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if p.Unit == 0 {
				p.Unit = time.Second
			}
			got := p.draw(rows[name])
			for _, row := range rows[name] {
				if n := row.n - p.First; n >= 0 {
					row.agree(t, &got[n])
				}
			}
		})
	}
}

// draw makes the waits of all rows. For rows in which nearly all waits are the
// cap, the others decide about the deviation: draw more of them.
func (p *Drawn) draw(rows []row) []moments {
	r, got := Seeded(), make([]moments, 13)
	n := draws()
	if p.Chain {
		for range n {
			var a backoff.History
			for a.N = range got {
				s, _ := p.Policy.Next(a, r)
				got[a.N].add(s.Wait, p.Unit, p.Cap, p.Soft)
				a.Prev = s.Wait
			}
		}
		return got
	}
	for _, row := range rows {
		N := row.n - p.First
		if N < 0 {
			continue
		}
		times := n
		if row.atCap > 0.8 && row.sd > 0 {
			times *= 8
		}
		for range times {
			s, _ := p.Policy.Next(backoff.History{N: N}, r)
			got[N].add(s.Wait, p.Unit, p.Cap, p.Soft)
		}
	}
	return got
}

// TestStationary fails if a long chain of waits does not have the moments of each row of file whose number is
// "stationary", or if file has another number of such rows. Their parameters have the cap, in seconds, for
// which of returns the policy.
func TestStationary(t *testing.T, file string, rows int, of func(limit time.Duration) backoff.Policy) {
	caps := regexp.MustCompile(`cap=(\d+)`)
	for _, fields := range records(t, file) {
		if fields[1] != "stationary" {
			continue
		}
		rows--
		row := parse(t, 0, fields)
		seconds, err := strconv.Atoi(caps.FindStringSubmatch(row.params)[1])
		if err != nil {
			t.Fatal(err)
		}
		limit := time.Duration(seconds) * time.Second
		p := of(limit)
		var got moments
		r, a := Seeded(), backoff.History{N: 1}
		for i := range 10*draws() + 60 { // ten times: neighbours are alike
			s, _ := p.Next(a, r)
			a.Prev = s.Wait
			if i >= 60 {
				got.add(s.Wait, time.Second, limit, false)
			}
		}
		row.agree(t, &got)
	}
	if rows != 0 {
		t.Errorf("%s lacks %d stationary rows", file, rows)
	}
}

func draws() int {
	if race || testing.Short() {
		return 20_000
	}
	return 1_000_000
}

// row is one of a reference.
type row struct {
	n                            int
	params                       string
	mean, sd, least, most, atCap float64
	exact                        bool
}

// agree fails unless mean and deviation agree to 1 % and the mass at the cap to 0.3
// points, or, with few draws, all of them to five standard errors.
func (want row) agree(t *testing.T, got *moments) {
	t.Helper()
	few := 0.0
	if race || testing.Short() {
		few = 5 / math.Sqrt(got.n)
	}
	near := func(what string, want, got, by float64, n int) {
		if !(math.Abs(want-got) <= by) {
			t.Errorf("%s of row %d: %v, not %v to %v", what, n, got, want, by)
		}
	}
	near("mean", want.mean, got.mean(), 0.01*want.mean+few*want.sd, want.n)
	near("deviation", want.sd, got.sd(), max(0.01, 4*few)*want.sd+1e-6, want.n)
	near("mass at the cap", want.atCap, got.atCap/got.n, max(0.003, few/2), want.n)
	if want.exact && (got.least < want.least*(1-1e-5) || got.most > want.most*(1+1e-5)) { // the file has six digits
		t.Errorf("row %d: from %v to %v, not from %v to %v", want.n, got.least, got.most, want.least, want.most)
	}
}

// records returns the records of file without its first, which has the names of the columns.
func records(t *testing.T, file string) [][]string {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all[1:]
}

func parse(t *testing.T, n int, fields []string) row {
	var numbers [5]float64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseFloat(fields[3+i], 64); err != nil {
			t.Fatal(err)
		}
	}
	return row{
		n: n, params: fields[2], exact: fields[8][:2] == "ex",
		mean: numbers[0], sd: numbers[1], least: numbers[2], most: numbers[3], atCap: numbers[4],
	}
}
