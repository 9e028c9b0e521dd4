package redisgate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client has the methods of a Redis client that a [Limiter] and a [Logins] call. A [redis.Client], a
// [redis.ClusterClient] and a [redis.Ring] are Clients; set their option ContextTimeoutEnabled. EvalSha and
// Eval must return soon after ctx is done, and be safe for concurrent use.
type Client interface {
	EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
}

// server is the Redis server of a Limiter or a Logins, with their script and keys.
type server struct {
	client       Client
	script, hash string
	keys         []string
	timeout      time.Duration           // of one request
	ctx          context.Context         // canceled by Close
	stop         context.CancelCauseFunc // cancels ctx
}

// newServer returns the server of client, or an error that names what is wrong with client, or with key,
// which is the Key of options.
func newServer(client Client, options, key, script string, names ...string) (s server, err error) {
	bounded := true
	switch c := client.(type) {
	case nil:
		return s, errors.New("redisgate: the client is nil")
	case interface{ Options() *redis.Options }:
		bounded = c.Options().ContextTimeoutEnabled
	case interface{ Options() *redis.ClusterOptions }:
		bounded = c.Options().ContextTimeoutEnabled
	case interface{ Options() *redis.RingOptions }:
		bounded = c.Options().ContextTimeoutEnabled
	}
	switch {
	case !bounded:
		return s, errors.New("redisgate: the client's option ContextTimeoutEnabled is not set, " +
			"so that a question could hang: set it")
	case key == "":
		return s, fmt.Errorf("redisgate: %s.Key is empty", options)
	case strings.ContainsAny(key, "{}"):
		return s, fmt.Errorf("redisgate: %s.Key: %.200q contains a brace", options, key)
	case len(key) > 200:
		return s, fmt.Errorf("redisgate: %s.Key is longer than 200 bytes: %d", options, len(key))
	}
	s.client, s.script, s.hash = client, script, redis.NewScript(script).Hash()
	for _, name := range names {
		s.keys = append(s.keys, "redisgate:{"+key+"}:"+name)
	}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s, nil
}

// call runs the script with args, scans the first line of its response, and returns the other
// lines. It returns soon after ctx is done or the timeout is over.
func (s *server) call(ctx context.Context, args []any, format string, to ...any) (lines string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errors.New("redisgate: no answer in time"))
	defer cancel()
	cmd := s.client.EvalSha(ctx, s.hash, s.keys, args...)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = s.client.Eval(ctx, s.script, s.keys, args...)
	}
	got, err := cmd.Result()
	switch {
	case err != nil && ctx.Err() != nil:
		return "", context.Cause(ctx)
	// Redis rejects a request as long as ours with a protocol error if it wants a password.
	case redis.HasErrorPrefix(err, "NOAUTH"), redis.HasErrorPrefix(err, "Protocol error: unauthenticated"):
		return "", fmt.Errorf("redisgate: Redis wants a password, and the client has none: %w", err)
	case err != nil:
		return "", err
	}
	first, lines, _ := strings.Cut(fmt.Sprint(got), "\n")
	if _, err := fmt.Sscanf(first, format, to...); err != nil {
		return "", fmt.Errorf("redisgate: the script returned %.200q", fmt.Sprint(got))
	}
	return lines, nil
}
