package backoff_test

import (
	"encoding/csv"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/classic"
)

// measured says how a row of backoff_moments.csv is drawn. Rows below first are left out,
// because no wait of ours corresponds to them (0 collisions; AWS counts the first retry
// as 1).
type measured struct {
	policy backoff.Policy
	first  int           // the row of the first wait, N = 0
	cap    time.Duration // what counts as being at the cap
	unit   time.Duration // default a second
	chain  bool          // the wait depends on the one before
	soft   bool          // a wait beyond the cap counts as being there
}

const half = 30 * time.Second

var algorithms = map[string]measured{
	"full_jitter":                         {policy: &backoff.Exponential{}, cap: half},
	"equal_jitter":                        {policy: &backoff.Exponential{Jitter: backoff.JitterEqual}, cap: half},
	"proportional_20":                     {policy: &backoff.Exponential{Jitter: backoff.JitterProportional}, cap: half},
	"exponential":                         {policy: &backoff.Exponential{Jitter: backoff.JitterNone}, cap: half},
	"decorrelated":                        {policy: &classic.Decorrelated{}, first: 1, cap: half, chain: true},
	"smira_normal":                        {policy: &classic.Normal{}, cap: 15 * time.Minute, chain: true, soft: true},
	"fixed":                               {policy: &classic.Fixed{}},
	"celery_current_cap_then_jitter":      {policy: &classic.Celery{Maximum: 30}, cap: half},
	"celery_seed_version_jitter_then_cap": {policy: &classic.CeleryOld{Maximum: 30}, cap: half},
	"ethernet_beb_slots":                  {policy: &classic.Ethernet{}, first: 1, unit: 51200},
	"cenkalti_v5":                         {policy: &classic.Cenkalti{}, cap: time.Minute},
	"grpc_connection":                     {policy: &classic.GRPC{}, cap: 2 * time.Minute},
	"nats_go_plain":                       {policy: &classic.NATS{}},
	"nats_go_tls":                         {policy: &classic.NATS{Jitter: time.Second}},
	"tailscale":                           {policy: &classic.Tailscale{}, first: 1, cap: half},
	"jpillora_jitter_then_cap":            {policy: &classic.JPillora{Min: time.Second, Max: half}, cap: half},
	"proportional_20_jitter_then_cap":     {policy: &classic.Stubborn{Base: time.Second, Spread: 0.2, Max: half}, cap: half},
	"aws_sdk_go_v2_legacy":                {policy: &classic.AWSLegacy{}, first: 1, cap: 20 * time.Second},
	"aws_sdk_go_v2_2026":                  {policy: &classic.AWS{}, cap: 20 * time.Second},
}

// moments are the moments of waits, drawn or as testdata/backoff_moments.csv has them.
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

func TestDrawsAgreeWithTheReferenceMoments(t *testing.T) {
	rows := reference(t)
	require.Len(t, algorithms, len(rows), "algorithms in the file")
	for name, m := range algorithms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if m.unit == 0 {
				m.unit = time.Second
			}
			got := m.draw(rows[name])
			for _, row := range rows[name] {
				if n := row.n - m.first; n >= 0 {
					row.agree(t, &got[n])
				}
			}
		})
	}
}

// draw makes the waits of all rows. For rows in which nearly all waits are the
// cap, the others decide about the deviation: draw more of them.
func (m *measured) draw(rows []row) []moments {
	r, got := seeded(), make([]moments, 13)
	n := draws()
	if m.chain {
		for range n {
			var a backoff.History
			for a.N = range got {
				s, _ := m.policy.Next(a, r)
				got[a.N].add(s.Wait, m.unit, m.cap, m.soft)
				a.Prev = s.Wait
			}
		}
		return got
	}
	for _, row := range rows {
		N := row.n - m.first
		if N < 0 {
			continue
		}
		times := n
		if row.atCap > 0.8 && row.sd > 0 {
			times *= 8
		}
		for range times {
			s, _ := m.policy.Next(backoff.History{N: N}, r)
			got[N].add(s.Wait, m.unit, m.cap, m.soft)
		}
	}
	return got
}

// The stationary rows: one long chain each, after 60 steps.
func TestDecorrelatedSettlesAsInTheReference(t *testing.T) {
	caps := regexp.MustCompile(`cap=(\d+)`)
	for _, row := range stationary(t) {
		seconds, err := strconv.Atoi(caps.FindStringSubmatch(row.params)[1])
		require.NoError(t, err)
		p := &classic.Decorrelated{Cap: time.Duration(seconds) * time.Second}
		var got moments
		r, a := seeded(), backoff.History{N: 1}
		for i := range 10*draws() + 60 { // ten times: neighbours are alike
			s, _ := p.Next(a, r)
			a.Prev = s.Wait
			if i >= 60 {
				got.add(s.Wait, time.Second, p.Cap, false)
			}
		}
		row.agree(t, &got)
	}
}

func draws() int {
	if race || testing.Short() {
		return 20_000
	}
	return 1_000_000
}

type row struct {
	n                            int
	params                       string
	mean, sd, least, most, atCap float64
	exact                        bool
}

// agree asserts that mean and deviation agree to 1 % and the mass at the cap to 0.3
// points, or, with few draws, all of them to five standard errors.
func (want row) agree(t *testing.T, got *moments) {
	t.Helper()
	few := 0.0
	if race || testing.Short() {
		few = 5 / math.Sqrt(got.n)
	}
	require.InDelta(t, want.mean, got.mean(), 0.01*want.mean+few*want.sd, "mean of row %d", want.n)
	require.InDelta(t, want.sd, got.sd(), max(0.01, 4*few)*want.sd+1e-6, "deviation of row %d", want.n)
	require.InDelta(t, want.atCap, got.atCap/got.n, max(0.003, few/2), "mass at the cap of row %d", want.n)
	if want.exact { // the file has six digits
		require.GreaterOrEqual(t, got.least, want.least*(1-1e-5), "row %d", want.n)
		require.LessOrEqual(t, got.most, want.most*(1+1e-5), "row %d", want.n)
	}
}

// reference reads the rows of backoff_moments.csv that have a number.
func reference(t *testing.T) map[string][]row {
	rows := map[string][]row{}
	for _, fields := range records(t) {
		if n, err := strconv.Atoi(fields[1]); err == nil {
			rows[fields[0]] = append(rows[fields[0]], parse(t, n, fields))
		}
	}
	return rows
}

// stationary reads those that have none.
func stationary(t *testing.T) (rows []row) {
	for _, fields := range records(t) {
		if fields[1] == "stationary" {
			rows = append(rows, parse(t, 0, fields))
		}
	}
	require.Len(t, rows, 5)
	return rows
}

func records(t *testing.T) [][]string {
	file, err := os.Open("testdata/backoff_moments.csv")
	require.NoError(t, err)
	defer file.Close()
	all, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	return all[1:]
}

func parse(t *testing.T, n int, fields []string) row {
	var numbers [5]float64
	for i := range numbers {
		var err error
		numbers[i], err = strconv.ParseFloat(fields[3+i], 64)
		require.NoError(t, err)
	}
	return row{
		n: n, params: fields[2], exact: fields[8][:2] == "ex",
		mean: numbers[0], sd: numbers[1], least: numbers[2], most: numbers[3], atCap: numbers[4],
	}
}
