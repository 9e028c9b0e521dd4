//go:build unix

package boltstore_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

// killedProgram is a client or a server in a process of its own.
type killedProgram struct {
	role string
	dir  string
	cmd  *exec.Cmd     // nil: it does not run
	over chan struct{} // closed when its output has ended

	mu    sync.Mutex // guards what follows
	added uint64     // the last message that was added, in all runs
	moved chan struct{}
	wrong []string
}

func (p *killedProgram) start(t *testing.T, env ...string) {
	t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), append(env, roleEnv+"="+p.role, dirEnv+"="+p.dir)...)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.cmd.Stderr = p.cmd.Stdout
	p.over, p.moved = make(chan struct{}), make(chan struct{})
	require.NoError(t, p.cmd.Start())
	go p.read(out, p.over, p.moved) // joined by wait
}

// read notes what the program says. Its first "took" or "acknowledged" closes moved.
func (p *killedProgram) read(out io.Reader, over, moved chan struct{}) {
	defer close(over)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		p.mu.Lock()
		var n uint64
		switch {
		case isError(line):
			p.wrong = append(p.wrong, line)
		case strings.HasPrefix(line, "added "):
			if _, err := fmt.Sscanf(line, "added %d", &n); err == nil {
				p.added = max(p.added, n)
			}
		case moved != nil:
			close(moved)
			moved = nil
		}
		p.mu.Unlock()
	}
}

// kill kills the program with SIGKILL, if it runs.
func (p *killedProgram) kill() {
	if p.cmd != nil {
		p.cmd.Process.Kill()
		p.wait()
	}
}

func (p *killedProgram) wait() error {
	<-p.over
	err := p.cmd.Wait()
	p.cmd = nil
	return err
}

// kills returns how many processes the test kills.
func kills() int {
	if os.Getenv("REDIAL_LONG") != "" {
		return 1000
	}
	return 40
}

// Client and server are killed at random moments. Nothing that Add has accepted is lost, the order is
// kept, and nothing has its effect twice.
func TestEveryMessageHasItsEffectOnceThoughBothAreKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	client, server := &killedProgram{role: "client", dir: dir}, &killedProgram{role: "server", dir: dir}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	defer client.kill()
	defer server.kill()
	server.start(t)
	client.start(t)
	n, idle := killBoth(t, client, server, random)
	client.kill()
	client.start(t, lastEnv+"=1")
	require.NoError(t, client.wait(), "the last client: %q", client.wrong)
	require.Empty(t, client.wrong)
	server.kill()
	require.Empty(t, server.wrong)
	got := list(t, dir)
	t.Logf("seed %d: %d kills, %d of them of a program that had done nothing yet; %d messages", seed, n, idle, got)
	require.GreaterOrEqual(t, got, client.added, "messages were lost")
	require.NotZero(t, got)
}

// killBoth kills the two at random, and returns how often, and how many of them had done nothing yet.
func killBoth(t *testing.T, client, server *killedProgram, random *rand.Rand) (n, idle int) {
	for n < kills() {
		victims := [][]*killedProgram{{client}, {client}, {server}, {server}, {client, server}}[random.IntN(5)]
		if random.IntN(4) > 0 { // else at any moment, such as at the start
			for _, v := range victims {
				select {
				case <-v.moved:
				case <-v.over:
				case <-time.After(20 * time.Second):
					t.Fatalf("after %d kills: the %s does nothing", n, v.role)
				}
			}
		}
		time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
		for _, v := range victims {
			select {
			case <-v.moved:
			default:
				idle++
			}
			v.kill()
			n++
		}
		for _, v := range victims {
			require.Empty(t, v.wrong, "the %s after %d kills", v.role, n)
			v.start(t)
		}
	}
	return n, idle
}

// list checks the server's list: each message once, and in order. It returns how many there are.
func list(t *testing.T, dir string) uint64 {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, "server.db"), 0o600, &bolt.Options{Timeout: 20 * time.Second})
	require.NoError(t, err)
	defer db.Close()
	var n uint64
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(listBucket)
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, v []byte) error {
			n++
			require.Equal(t, n, binary.BigEndian.Uint64(k))
			require.Equal(t, string(payload(n)), string(v), "entry %d of the list", n)
			return nil
		})
	}))
	return n
}
