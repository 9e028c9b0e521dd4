package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgressIsAPlainLineWhereThereIsNoTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		p := newProgress(&console{errs: &errs}, "simulate", 100)
		for range 25 {
			p.add(1)
			time.Sleep(time.Second)
		}
		p.end()
		require.Equal(t, "simulate: 3 of 100\nsimulate: 13 of 100\nsimulate: 23 of 100\n", errs.String())
	})
}

func TestProgressIsABarOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		p := newProgress(&console{errs: &errs, terminal: true}, "simulate", 100)
		p.add(1)
		time.Sleep(time.Second)
		p.add(1)
		require.Empty(t, errs.String(), "it may be over soon")
		time.Sleep(time.Second)
		p.add(8)
		require.Contains(t, errs.String(), "10/100")
		p.end()
	})
}
