package history

import (
	"slices"
	"strconv"
	"strings"
)

// Shrink returns the smallest plan that it finds for which fails still reports true: it leaves out
// events, the more the better, and gives settings their defaults. It calls fails some hundred times
// at most.
func Shrink(p *Plan, fails func(*Plan) bool) *Plan {
	left := 400
	try := func(q *Plan) bool {
		if left == 0 {
			return false
		}
		left--
		return fails(q)
	}
	for size := len(p.Events); size > 0; size /= 2 {
		for from := 0; from < len(p.Events); {
			q := *p
			q.Events = slices.Delete(slices.Clone(p.Events), from, min(from+size, len(p.Events)))
			if try(&q) {
				p = &q
			} else {
				from += size
			}
		}
	}
	for _, name := range p.drawn() {
		if q, err := p.Without(append(slices.Clone(p.without), name)); err == nil && q.Settings != p.Settings && try(q) {
			p = q
		}
	}
	return p
}

// Command returns the arguments of the test that run p again.
func (p *Plan) Command() string {
	var b strings.Builder
	b.WriteString("go test ./reconnect/internal/history -run TestHistories -args -show -histories 1 -seed " + strconv.FormatUint(p.Seed, 10))
	if p.above != "" {
		b.WriteString(" -above " + p.above)
	}
	if all := drawWith(p.Seed, p.above); len(all.Events) != len(p.Events) {
		var indexes []string
		for _, e := range p.Events {
			indexes = append(indexes, strconv.Itoa(e.Index))
		}
		b.WriteString(" -only " + strings.Join(append(indexes, "-1"), ","))
	}
	if len(p.without) > 0 {
		b.WriteString(" -without " + strings.Join(p.without, ","))
	}
	return b.String()
}
