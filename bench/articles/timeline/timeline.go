// Package timeline reproduces the letter diagram of an article about retries (Denis Isaev, "Good
// Retry, Bad Retry: An Incident Story", Yandex, 2024): one request comes each second,
// each takes a second and fails, and is tried again by a policy. It shows how deferred
// retries pile up later than immediate ones, and as high.
package timeline

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Diagram is which requests are at the server in each second.
type Diagram struct {
	Seconds [][]Letter // from second 1 on; in a second the oldest request first
}

// Letter is one request, in one of its tries.
type Letter struct {
	Request int // from 0; printed as A, B, C ...
	Try     int // from 0
}

// Rule is what the caller does about a request that has failed.
type Rule struct {
	Name   string
	Policy backoff.Policy
}

// Rules returns those of the article's diagram, with so many retries.
func Rules(retries int) []Rule {
	return []Rule{
		{"retries at once", backoff.Limit(&backoff.Exponential{Base: -1}, retries, 0)},
		{"retries after 1, 2 and 4 s", backoff.Limit(&backoff.Exponential{Base: time.Second, Cap: -1, Jitter: backoff.JitterNone}, retries, 0)},
	}
}

// Draw begins one request in each of so many seconds; each try takes a second and
// fails, and what follows is the policy's decision. Waits count from the end of the
// try, in whole seconds: what is over is cut.
func Draw(p backoff.Policy, seconds int) *Diagram {
	d := &Diagram{Seconds: make([][]Letter, max(seconds, 0))}
	r := rand.New(rand.NewPCG(1, 0x1e77)) // for policies with jitter
	for request := range d.Seconds {
		var outage schedule.Outage
		for second, try := request, 0; second < len(d.Seconds); try++ {
			d.Seconds[second] = append(d.Seconds[second], Letter{request, try})
			ended := second + 1
			step, ok := outage.Next(p, backoff.Verdict{Class: backoff.ClassRetry}, time.Unix(int64(ended), 0), r)
			if !ok {
				break
			}
			second = ended + int(step.Wait/time.Second)
		}
	}
	return d
}

// Amplification returns how many requests are at the server in each second, from second
// 1 on: times the normal load, which is one.
func (d *Diagram) Amplification() []int {
	n := make([]int, len(d.Seconds))
	for i, at := range d.Seconds {
		n[i] = len(at)
	}
	return n
}

// WriteTo draws it as text: the seconds from left to right, above each the letters of
// the requests that are at the server in it, capital for a first try; the
// amplification below.
func (d *Diagram) WriteTo(w io.Writer) (int64, error) {
	top := 0
	if len(d.Seconds) > 0 {
		top = slices.Max(d.Amplification())
	}
	var b strings.Builder
	for row := top - 1; row >= 0; row-- {
		b.WriteString("       ")
		for _, at := range d.Seconds {
			cell := ""
			if row < len(at) {
				cell = at[row].name()
			}
			fmt.Fprintf(&b, "%4s", cell)
		}
		b.WriteString("\n")
	}
	b.WriteString("second ")
	for i := range d.Seconds {
		fmt.Fprintf(&b, "%4d", i+1)
	}
	b.WriteString("\nload   ")
	for _, n := range d.Amplification() {
		fmt.Fprintf(&b, "%3dx", n)
	}
	b.WriteString("\n")
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// name is A to Z, then A1 to Z1 and so on, small for a retry.
func (l Letter) name() string {
	name := string(rune('A' + l.Request%26))
	if round := l.Request / 26; round > 0 {
		name += fmt.Sprint(round)
	}
	if l.Try > 0 {
		return strings.ToLower(name)
	}
	return name
}
