package redisgate

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client has the methods of a Redis client that a [Limiter] and a [Logins] call. A [redis.Client], a
// [redis.ClusterClient] and a [redis.Ring] are Clients; set their option ContextTimeoutEnabled. EvalSha and Eval must return soon
// after ctx has ended, and be safe for concurrent use.
type Client interface {
	EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
}

//go:embed script.lua
var source string

var limitScript = newScript(source)

// script is a script, which Redis knows by its hash.
type script struct{ source, hash string }

func newScript(source string) script { return script{source, redis.NewScript(source).Hash()} }

// run runs the script.
func (s script) run(ctx context.Context, c Client, keys []string, args []any) *redis.Cmd {
	cmd := c.EvalSha(ctx, s.hash, keys, args...)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = c.Eval(ctx, s.source, keys, args...)
	}
	return cmd
}

// checkClient returns an error if the options of a client are wrong.
func checkClient(c Client) error {
	ok := true
	switch c := c.(type) {
	case nil:
		return errors.New("redisgate: the client is nil")
	case interface{ Options() *redis.Options }:
		ok = c.Options().ContextTimeoutEnabled
	case interface{ Options() *redis.ClusterOptions }:
		ok = c.Options().ContextTimeoutEnabled
	case interface{ Options() *redis.RingOptions }:
		ok = c.Options().ContextTimeoutEnabled
	}
	if !ok {
		return errors.New("redisgate: the client's option ContextTimeoutEnabled is not set, so that a question could hang: set it")
	}
	return nil
}

// question is a question of this process to Redis.
type question struct {
	want  int // so many dials wait
	held  int // so many slots are held
	spent int // so many dials began by the share within the window; -1: Redis was not away

	untold int // what talk.untold was
}

// answer is the answer to a question, or its failure.
type answer struct {
	q          question
	sent, came time.Time
	err        error // all below is zero then

	granted int           // so many dials may begin
	back    time.Duration // ask again after this time, if more wait
	clock   time.Duration // of the server
	closed  time.Duration // so long no dial may begin, because Redis does not know the last window
	differ  error         // another process has asked with other limits
}

// ask asks Redis. It returns soon after ctx has ended.
func (l *Limiter) ask(ctx context.Context, q question, sent time.Time) (a answer) {
	a = answer{q: q, sent: sent}
	o := &l.o
	args := []any{
		l.id, q.want, q.held, q.spent, o.Rate.N, o.window().Microseconds(), o.Slots, o.Lease.Microseconds(),
		o.lag().Microseconds(), o.round().Microseconds(), longestNap.Microseconds(), o.Rate.Per.Microseconds(),
	}
	got, err := limitScript.run(ctx, l.client, l.keys, args).Int64Slice()
	a.came = time.Now()
	switch {
	case err != nil:
		a.err = named(err)
	case len(got) < 9 || got[0] < 0 || got[0] > int64(q.want):
		a.err = fmt.Errorf("redisgate: the script returned %v", got)
	default:
		a.granted = int(got[0])
		a.back, a.clock, a.closed = micros(got[1]), micros(got[2]), micros(got[3])
		a.differ = o.differ(int(got[6]), micros(got[7]), int(got[8]))
	}
	return a
}

// named returns err, and names the reason if Redis wants a password that the client has not given. Redis refuses a
// question as long as ours with a protocol error then.
func named(err error) error {
	if redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "Protocol error: unauthenticated") {
		return fmt.Errorf("redisgate: Redis wants a password, and the client has none: %w", err)
	}
	return err
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// longestNap is how long a process with waiting dials goes without asking, at most.
const longestNap = 5 * time.Second
