package redisgate

import (
	"context"
	crand "crypto/rand"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
)

//go:embed logins.lua
var loginsSource string

var loginsScript = newScript(loginsSource)

// record is what a process knows of the record in Redis.
type record struct {
	epoch   string // changes when Redis forgets; empty: not known
	version int64  // changes with each login
	longest int64  // the longest window of any process, in microseconds; 0: not known
	known   []login
}

// login is a login in the record.
type login struct {
	id string
	at int64 // in microseconds of the server's clock
}

// loginAnswer is the answer to a question, or its failure.
type loginAnswer struct {
	err  error // all fields but came are zero then
	came time.Time

	taken   bool
	clock   int64         // of the server, in microseconds
	closed  time.Duration // for how long nobody may log in
	epoch   string
	version int64
	longest int64
	changed bool    // logins are those of the record
	logins  []login // the oldest first
}

// question asks Redis. known is what the process knows, and forgotten are logins that Redis gets back.
func (l *Logins) question(ctx context.Context, id string, windows []budget.Window, known *record, forgotten []login) loginAnswer {
	ctx, cancel := context.WithTimeoutCause(ctx, l.o.Timeout, errTimeout)
	defer cancel()
	args := []any{id, known.epoch, known.version, known.newest(), crand.Text(), l.pause().Microseconds(), known.longest, len(windows)}
	for _, w := range windows {
		args = append(args, w.N, w.Per.Microseconds()+1) // because the times in Redis are rounded down
	}
	for _, x := range forgotten {
		args = append(args, x.at, x.id)
	}
	got, err := loginsScript.run(ctx, l.client, l.keys, args).Slice()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return parseLogins(got, named(err))
}

// parseLogins returns the answer of the script.
func parseLogins(got []any, err error) (a loginAnswer) {
	a.came = time.Now()
	if err != nil {
		a.err = err
		return a
	}
	var n [7]int64
	for i := range min(len(n), len(got)) {
		n[i], _ = got[i].(int64)
	}
	epoch := ""
	if len(got) > 3 {
		epoch, _ = got[3].(string)
	}
	if len(got) < len(n) || len(got)%2 == 0 || n[1] <= 0 || epoch == "" {
		a.err = fmt.Errorf("redisgate: the script returned %.200q", fmt.Sprint(got))
		return a
	}
	a.taken, a.clock, a.closed, a.epoch = n[0] == 1, n[1], micros(n[2]), epoch
	a.version, a.longest, a.changed = n[4], n[5], n[6] == 1
	for pair := range slices.Chunk(got[len(n):], 2) {
		text, _ := pair[1].(string)
		at, err := strconv.ParseFloat(text, 64)
		id, ok := pair[0].(string)
		if err != nil || !ok {
			return loginAnswer{came: a.came, err: fmt.Errorf("redisgate: the script returned a login %.200q", fmt.Sprint(pair))}
		}
		a.logins = append(a.logins, login{id, int64(at)})
	}
	return a
}

// newest returns when the newest login was made; 0: none is known.
func (r *record) newest() int64 {
	if len(r.known) == 0 {
		return 0
	}
	return r.known[len(r.known)-1].at
}

// missing returns the logins that the server has forgotten, as an answer shows. They must be given back.
func (r *record) missing(a loginAnswer) (forgotten []login) {
	if a.err != nil || r.epoch == "" || r.epoch == a.epoch {
		return nil
	}
	for _, x := range r.known {
		if !slices.Contains(a.logins, x) {
			forgotten = append(forgotten, x)
		}
	}
	return forgotten
}

// note notes an answer.
func (r *record) note(a loginAnswer) {
	if a.err != nil {
		return
	}
	r.epoch, r.version, r.longest = a.epoch, a.version, a.longest
	if a.changed {
		r.known = a.logins
	}
}

// times returns the times of the logins in an answer, on the clock of this process. Each time is 2 µs later than the
// answer says, because the times in Redis are rounded down and a window there is longer by a
// microsecond. A login in the future counts as made now, because logins.lua removes it if it is too
// far ahead for too long.
func (r *record) times(a loginAnswer) []time.Time {
	times := make([]time.Time, len(r.known))
	for i, x := range r.known {
		times[i] = a.came.Add(-micros(max(a.clock-x.at-2, 0)))
	}
	return times
}
