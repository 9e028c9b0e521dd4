package redisgate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/budget/redisgate"
)

// loginsEnv is the environment of a child that logs in: the address of the Redis server. The server to log in to is
// that of targetEnv.
const loginsEnv = "REDISGATE_TEST_LOGINS"

// The budget of the children. The second window is the end of the test.
var fewLogins = []budget.Window{{N: 10, Per: 2 * time.Second}, {N: 60, Per: time.Hour}}

// loginReport is what a child says at its end.
type loginReport struct {
	Logins  int64    // that were taken
	Waiting []string // why its connections wait
}

// runLogins is one process with three connections that log in and are lost, again and again, until its standard
// input ends.
func runLogins() {
	redis.SetLogger(silent{})
	r, err := logins()
	if err != nil {
		panic(err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

func logins() (r loginReport, err error) {
	client := redis.NewClient(&redis.Options{Addr: os.Getenv(loginsEnv), ContextTimeoutEnabled: true})
	defer client.Close()
	shared, err := redisgate.NewLogins(client, &redisgate.LoginsOptions{Key: "account", Timeout: 2 * time.Second})
	if err != nil {
		return r, err
	}
	l, err := budget.NewLogins(&budget.LoginsOptions{Windows: fewLogins, Shared: shared})
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var taken atomic.Int64
	causes := make([]atomic.Value, 3)
	for i := range causes {
		wg.Go(func() { logIn(ctx, l, &taken, &causes[i]) })
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	wg.Wait()
	r.Logins = taken.Load()
	for i := range causes {
		text, _ := causes[i].Load().(string)
		r.Waiting = append(r.Waiting, text)
	}
	return r, shared.Close()
}

// logIn keeps one connection, which the server ends after each login.
func logIn(ctx context.Context, l *budget.Logins, taken *atomic.Int64, cause *atomic.Value) {
	policy := &backoff.Exponential{Base: 50 * time.Millisecond, Cap: 100 * time.Millisecond}
	_ = reconnect.Run(ctx, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", os.Getenv(targetEnv))
	}, func(ctx context.Context, c net.Conn, s *reconnect.Session) error {
		if err := s.Login(ctx); err != nil {
			return err
		}
		taken.Add(1)
		if _, err := io.WriteString(c, "login\n"); err != nil {
			return err
		}
		_, err := c.Read(make([]byte, 1))
		return err
	}, &reconnect.RunOptions{Policy: policy, Logins: l, Trace: &reconnect.Trace{WaitStart: func(e reconnect.WaitStart) {
		if e.Cause != nil {
			cause.Store(e.Cause.Error())
		}
	}}})
}

// loginServer is the server to log in to. It counts the logins, and ends each connection after one.
type loginServer struct {
	net.Listener
	logins, dials atomic.Int64
	ended         sync.WaitGroup
}

func newLoginServer(t *testing.T) *loginServer {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &loginServer{Listener: ln}
	s.ended.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.dials.Add(1)
			s.ended.Go(func() {
				defer c.Close()
				if line, _ := bufio.NewReader(c).ReadString('\n'); line == "login\n" {
					s.logins.Add(1)
				}
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		s.ended.Wait()
	})
	return s
}

// reach waits until there were so many logins.
func (s *loginServer) reach(t *testing.T, n int64) {
	t.Helper()
	require.Eventually(t, func() bool { return s.logins.Load() >= n }, 5*time.Minute, 20*time.Millisecond, "so many logins should have come: %d", n)
}

// Three processes share ten logins in two seconds, and 60 in all. Redis is killed, restarted empty, and emptied
// meanwhile. What Redis knows at the end, and what the server has seen, is counted.
func TestThreeProcessesShareTheirLogins(t *testing.T) {
	t.Parallel()
	s, target := newRedisServer(t), newLoginServer(t)
	client := s.client(t)
	var procs []*process
	for range 3 {
		p := &process{cmd: exec.Command(os.Args[0])}
		p.cmd.Env = append(os.Environ(), loginsEnv+"="+s.addr, targetEnv+"="+target.Addr().String())
		p.cmd.Stdout, p.cmd.Stderr = &p.out, os.Stderr
		in, err := p.cmd.StdinPipe()
		require.NoError(t, err)
		p.in = in
		require.NoError(t, p.cmd.Start())
		t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
		procs = append(procs, p)
	}
	target.reach(t, 15)
	s.kill()
	s.start(t)
	target.reach(t, 30)
	require.NoError(t, client.FlushAll(t.Context()).Err())
	target.reach(t, 45)
	require.NoError(t, client.Del(t.Context(), "redisgate:{account}:logins").Err())
	var record []redis.Z
	require.Eventually(t, func() bool {
		var err error
		record, err = client.ZRangeWithScores(t.Context(), "redisgate:{account}:logins", 0, -1).Result()
		return err == nil && len(record) >= 60
	}, 5*time.Minute, 20*time.Millisecond)
	for _, key := range []string{"redisgate:{account}:logins", "redisgate:{account}:loginstate"} {
		left, err := client.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		require.Greater(t, left, 50*time.Minute, key)
		require.LessOrEqual(t, left, 61*time.Minute, key)
	}
	time.Sleep(3 * time.Second) // if one could log in it would, by now
	var taken int64
	for _, p := range procs {
		require.NoError(t, p.in.Close())
		require.NoError(t, p.cmd.Wait())
		var r loginReport
		require.NoError(t, json.Unmarshal(p.out.Bytes(), &r), p.out.String())
		taken += r.Logins
		for _, text := range r.Waiting {
			require.True(t, strings.HasPrefix(text, "the budget allows no login before "), text)
		}
	}
	var at []time.Time
	for _, z := range record {
		at = append(at, time.UnixMicro(int64(z.Score)))
	}
	t.Logf("logins: %d in Redis, %d taken, %d at the server, of %d connections; most in %v: %d",
		len(record), taken, target.logins.Load(), target.dials.Load(), fewLogins[0].Per, mostIn(at, fewLogins[0].Per))
	require.Len(t, record, 60)
	require.LessOrEqual(t, mostIn(at, fewLogins[0].Per), fewLogins[0].N)
	require.LessOrEqual(t, taken, int64(60))
	require.LessOrEqual(t, target.logins.Load(), taken)
}
