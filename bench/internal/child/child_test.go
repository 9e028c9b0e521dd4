//go:build unix

package child

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain is the child as well: it writes each line of its input as JSON, and ends with it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "echo" {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			_ = json.NewEncoder(os.Stdout).Encode(lines.Text())
		}
		fmt.Fprintln(os.Stderr, "no more input")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func echo(t *testing.T) (*Process, chan string) {
	said := make(chan string, 9)
	p, err := Start(func(s string) { said <- s }, "echo")
	require.NoError(t, err)
	t.Cleanup(func() { p.Kill(); <-p.Gone() })
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
	require.Equal(t, "no more input", p.LastWords())
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
	<-p.Gone()
	_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	require.ErrorIs(t, err, syscall.ECHILD, "no process is left")
}
