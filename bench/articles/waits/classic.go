package waits

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// UserRow is one attempt in the table of users who lost their connections at one instant.
type UserRow struct {
	Attempt   int           // from 1
	Table     time.Duration // the delay as the table of such articles has it: 1, 2, 4 s and so on
	Delay     time.Duration // the delay of the code, which counts attempts from 1: 2, 4, 8 s and so on
	Low, High time.Duration // the bounds of a wait
	Waits     []time.Duration
}

// The parameters of the users' backoff.
const (
	usersBase = time.Second
	usersCap  = 30 * time.Second

	UsersJitter = 0.2 // the article's
	mostJitter  = 1000
)

// Users returns the waits of some users side by side, by the function of the article about jitter:
//
//	delay = min(30 s, 1 s x 2^attempt), attempts from 1 on
//	wait  = floor(max(0, delay + u x jitter x delay)) in ms, u uniform from -1 to 1
//
// With a jitter of 0 all wait the same. Above 1, a share (jitter-1)/(2 jitter) of the waits is 0, and their
// mean is delay x (1+jitter)^2/(4 jitter).
func Users(users, attempts int, jitter float64, seed uint64) ([]UserRow, error) {
	switch {
	case users < 1 || attempts < 1:
		return nil, fmt.Errorf("draw waits: want users and attempts, not %d and %d", users, attempts)
	case users > mostDrawn/attempts:
		return nil, errTooMany
	case !(jitter >= 0 && jitter <= mostJitter):
		return nil, fmt.Errorf("draw waits: want a jitter from 0 to %d, not %v", mostJitter, jitter)
	}
	rows := make([]UserRow, attempts)
	for i := range rows {
		d := span.Grow(usersBase, 2, i+1, usersCap)
		by := time.Duration(jitter * float64(d))
		rows[i] = UserRow{
			Attempt: i + 1,
			Table:   span.Grow(usersBase, 2, i, usersCap),
			Delay:   d,
			Low:     max(d-by, 0),
			High:    d + by,
		}
	}
	for u := range users {
		r := rand.New(rand.NewPCG(seed+uint64(u), 0x0123))
		for i := range rows {
			row := &rows[i]
			above, _ := bits.Mul64(r.Uint64(), uint64(2*(row.High-row.Delay)))
			wait := 2*row.Delay - row.High + time.Duration(above)
			row.Waits = append(row.Waits, max(wait, 0).Truncate(time.Millisecond))
		}
	}
	return rows, nil
}

// Moments are a mean and a standard deviation, in the unit that goes with them.
type Moments struct{ Mean, SD float64 }

// moments returns those of some values.
func moments(values []float64) Moments {
	var sum, squares float64
	for _, x := range values {
		sum += x
	}
	mean := sum / float64(len(values))
	for _, x := range values {
		squares += (x - mean) * (x - mean)
	}
	return Moments{mean, math.Sqrt(squares / float64(len(values)))}
}

// EthernetRow is what a station waits after a number of collisions, in slots.
type EthernetRow struct {
	Collisions int     // c, from 1 on
	Most       int     // N = 2^min(c,10) - 1
	Formula    Moments // E(c) = N/2, and sqrt(((N+1)^2 - 1)/12)
	Drawn      Moments
}

// Ethernet returns E(c) = (2^c - 1)/2 of Ethernet's truncated binary exponential backoff,
// for up to 15 collisions, beside so many draws of [classic.Ethernet] for each. It calls each after
// each row; nil is allowed. When ctx ends it returns the rows that it has, and the cause of ctx.
func Ethernet(ctx context.Context, draws int, seed uint64, each func()) ([]EthernetRow, error) {
	if draws < 1 {
		return nil, fmt.Errorf("draw waits: want at least one draw, not %d", draws)
	}
	if draws > mostDrawn {
		return nil, errTooMany
	}
	p := &classic.Ethernet{Slot: time.Second}
	r := rand.New(rand.NewPCG(seed, 0xe7e))
	var rows []EthernetRow
	for c := 1; ; c++ {
		if ctx.Err() != nil {
			return rows, context.Cause(ctx)
		}
		slots := make([]float64, draws)
		for i := range slots {
			s, ok := p.Next(backoff.History{N: c - 1}, r)
			if !ok {
				return rows, nil // the station has given up
			}
			slots[i] = s.Wait.Seconds()
		}
		n := float64(int(1)<<min(c, 10)) - 1
		rows = append(rows, EthernetRow{
			Collisions: c, Most: int(n), Drawn: moments(slots),
			Formula: Moments{n / 2, math.Sqrt(((n+1)*(n+1) - 1) / 12)},
		})
		if each != nil {
			each()
		}
	}
}

// NormalSetting is one of the settings of backoff with normally distributed noise that
// its author draws.
type NormalSetting struct {
	Name   string
	Policy *classic.Normal
}

// NormalSettings returns the two.
func NormalSettings() []NormalSetting {
	return []NormalSetting{
		{"100 ms, 2.7, 10 min", &classic.Normal{Min: 100 * time.Millisecond, Factor: 2.7, Jitter: 0.1, Max: 10 * time.Minute}},
		{"1 s, 1.5, 5 min", &classic.Normal{Min: time.Second, Factor: 1.5, Jitter: 0.1, Max: 5 * time.Minute}},
	}
}

// NormalRow is what a client with normal noise waits before one retry.
type NormalRow struct {
	Retry   int     // from 1 on
	Formula Moments // Min*Factor^n in seconds, and that times sqrt((1+Jitter^2)^n - 1); where Exact
	Exact   bool    // the cap is too far away to matter: by more than five standard deviations
	Plain   float64 // the wait without noise, in seconds: min(Max, Min*Factor^n)
	Drawn   Moments // in seconds
	Stats   Stats
	AtCap   float64 // share of the waits in which the noise was added to the cap
}

// Normals returns the waits of so many clients before each of so many retries. It calls each after each
// client; nil is allowed. When ctx ends it returns the waits of the clients until then, and the cause of ctx.
func Normals(ctx context.Context, p *classic.Normal, retries, draws int, seed uint64, each func()) (rows []NormalRow, err error) {
	if retries < 1 || draws < 1 {
		return nil, fmt.Errorf("draw waits: want retries and draws, not %d and %d", retries, draws)
	}
	if draws > mostDrawn/retries {
		return nil, errTooMany
	}
	values := make([][]float64, retries)
	capped := make([]int, retries)
	for i := range draws {
		if ctx.Err() != nil {
			draws, err = i, context.Cause(ctx)
			break
		}
		r := rand.New(rand.NewPCG(seed+uint64(i), 0x4e0))
		var a backoff.History
		for a.N = range retries {
			if a.N > 0 && p.Factor*float64(a.Prev) >= float64(p.Max) {
				capped[a.N]++
			}
			s, _ := p.Next(a, r)
			a.Prev = s.Wait
			values[a.N] = append(values[a.N], s.Wait.Seconds())
		}
		if each != nil {
			each()
		}
	}
	if draws == 0 {
		return nil, err
	}
	rows = make([]NormalRow, retries)
	for n, drawn := range values {
		mean := p.Min.Seconds() * math.Pow(p.Factor, float64(n))
		m := Moments{mean, mean * math.Sqrt(math.Pow(1+p.Jitter*p.Jitter, float64(n))-1)}
		rows[n] = NormalRow{
			Retry: n + 1, Formula: m, Exact: m.Mean+5*m.SD < p.Max.Seconds(), Plain: min(mean, p.Max.Seconds()),
			Drawn: moments(drawn), Stats: stats(drawn), AtCap: float64(capped[n]) / float64(draws),
		}
	}
	return rows, err
}
