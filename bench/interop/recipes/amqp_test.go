//go:build linux

package recipes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/port"
	"github.com/redial-go/redial/bench/interop/internal/server"
)

// startRabbitMQ starts RabbitMQ as a process of its own, with its own name server for Erlang, on ports of 127.0.0.1.
func startRabbitMQ(t *testing.T) *server.Server {
	path := server.Find(t, "/usr/lib/rabbitmq/bin/rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server")
	names := server.New(t, func(port string) *exec.Cmd {
		return exec.Command(server.Find(t, "epmd", "/usr/lib/erlang/erts-*/bin/epmd"), "-port", port, "-address", "127.0.0.1")
	})
	names.Start()
	dir, dist := t.TempDir(), port.Free(t)
	config, plugins := filepath.Join(dir, "rabbitmq.conf"), filepath.Join(dir, "plugins")
	require.NoError(t, os.WriteFile(plugins, []byte("[]."), 0o600))
	s := server.New(t, func(port string) *exec.Cmd {
		require.NoError(t, os.WriteFile(config, []byte("listeners.tcp.1 = 127.0.0.1:"+port+"\n"), 0o600))
		c := exec.Command(path)
		c.Env = append(os.Environ(), "HOME="+dir, "ERL_EPMD_PORT="+names.Port, "ERL_EPMD_ADDRESS=127.0.0.1",
			"RABBITMQ_NODENAME=recipes@localhost", "RABBITMQ_DIST_PORT="+dist,
			"RABBITMQ_MNESIA_BASE="+dir, "RABBITMQ_LOG_BASE="+dir, "RABBITMQ_PID_FILE="+filepath.Join(dir, "pid"),
			"RABBITMQ_CONFIG_FILE="+config, "RABBITMQ_ENABLED_PLUGINS_FILE="+plugins, "RABBITMQ_CONF_ENV_FILE="+filepath.Join(dir, "env"),
			"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} +S 1 +sbwt none")
		return c
	})
	t.Cleanup(func() {
		logs, _ := filepath.Glob(dir + "/*.log")
		for _, log := range logs {
			if text, err := os.ReadFile(log); t.Failed() && err == nil {
				t.Logf("%s:\n%s", log, tail(string(text)))
			}
		}
	})
	s.Patience = time.Minute
	s.Start()
	return s
}

// Nothing is lost. What may come twice: after a kill of RabbitMQ the line whose confirmation was under way, and
// after any kill the messages whose acknowledgements were, of which there are 10 at most.
func TestAMQP(t *testing.T) {
	broker := startRabbitMQ(t)
	p := pipe(t, "amqp", "-url", "amqp://guest:guest@"+broker.Address+"/", "-queue", "numbers")
	sent := numbered("number", 0, 60)
	p.feed(sent[:40]...)
	eventually(t, "15 lines come", func() bool { return len(p.lines()) >= 15 })
	broker.Kill()
	broker.Start()
	eventually(t, "40 lines come", func() bool { lost, _ := tally(p.lines(), sent[:40]); return len(lost) == 0 })
	p.kill()
	p.start()
	p.feed(sent[40:]...)
	require.NoError(t, p.in.Close())
	p.noted(1, "all lines are published")
	eventually(t, "all lines come", func() bool { lost, _ := tally(p.lines(), sent); return len(lost) == 0 })
	p.interrupt()
	lost, doubled := tally(p.lines(), sent)
	t.Logf("%d lines over a kill of RabbitMQ and a kill of the recipe: lost %v, doubled %v", len(sent), lost, doubled)
	require.Empty(t, lost)
	require.LessOrEqual(t, len(doubled), 1+2*10)

	// The first message of a queue of its own is known.
	full := p.twin("-url", "amqp://guest:guest@"+broker.Address+"/", "-queue", "full")
	full.kill()
	full.startFull() // it acknowledges nothing that it has not printed
	full.feed(sent[:20]...)
	full.waitFull()
	full.start()
	eventually(t, "what was kept comes", func() bool { return slices.Contains(full.lines(), sent[0]) })
	full.interrupt()
}
