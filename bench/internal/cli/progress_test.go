package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgressIsAPlainLineWhereThereIsNoTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		p := NewProgress(&Console{Errs: &errs}, "simulate", 100)
		time.Sleep(time.Second / 2)
		for range 25 {
			p.Add(1)
			time.Sleep(time.Second)
		}
		p.End()
		require.Equal(t, "simulate: 2 of 100\nsimulate: 12 of 100\nsimulate: 22 of 100\n", errs.String())
	})
}

func TestProgressIsSeenBeforeTheFirstPartIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		p := NewProgress(&Console{Errs: &errs}, "simulate", 2)
		time.Sleep(13 * time.Second)
		p.End()
		require.Equal(t, "simulate: 0 of 2\nsimulate: 0 of 2\n", errs.String())
	})
}

func TestProgressIsALineThatChangesOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		p := NewProgress(&Console{Errs: &errs, Terminal: true}, "simulate", 100)
		shown := func() string {
			p.mu.Lock()
			defer p.mu.Unlock()
			return errs.String()
		}
		time.Sleep(time.Second)
		p.Add(1)
		require.Empty(t, shown(), "it may be over soon")
		time.Sleep(time.Second + time.Second/2)
		p.Add(9)
		require.Equal(t, "\rsimulate [##------------------] 10/100, 22 s left", shown()[strings.LastIndex(shown(), "\r"):])
		p.End()
		require.Regexp(t, `\r {49}\r$`, errs.String(), "it is taken away")
	})
}
