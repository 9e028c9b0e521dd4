//go:build unix

package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if Is("echo") {
		os.Exit(Main("echo", serveEcho))
	}
	os.Exit(m.Run())
}

// serveEcho is the child: it writes each line of its input as JSON, and fails after the last.
func serveEcho(lastWords string, in io.Reader, out io.Writer) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := json.NewEncoder(out).Encode(lines.Text()); err != nil {
			return err
		}
	}
	return errors.New(lastWords)
}

func echo(t *testing.T) (*Process, chan string) {
	said := make(chan string, 9)
	p, err := Start(func(s string) { said <- s }, "echo", "no more input")
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p, said
}

func say(t *testing.T, p *Process, line string) {
	_, err := fmt.Fprintln(p.In, line)
	require.NoError(t, err)
}

func TestAChildAnswersAndItsLastWordsAreKept(t *testing.T) {
	p, said := echo(t)
	say(t, p, "hello")
	require.Equal(t, "hello", <-said)
	require.NoError(t, p.In.Close())
	<-p.Gone()
	require.Equal(t, "echo: no more input", p.LastWords())
}

func TestAChildThatIsHaltedGoesOnOrIsKilled(t *testing.T) {
	p, said := echo(t)
	require.NoError(t, p.Halt())
	say(t, p, "late")
	require.NoError(t, p.Resume())
	require.Equal(t, "late", <-said)
	require.NoError(t, p.Halt())
	p.Kill()
	p.Kill()
	_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	require.ErrorIs(t, err, syscall.ECHILD, "no process is left")
}
