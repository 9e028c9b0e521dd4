package boltstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/redial-go/redial/reconnect/ledger"
	"github.com/redial-go/redial/reconnect/ledger/boltstore"
)

// runsFile has a line for each process of a history: the newest ID in the file when the process began.
const runsFile = "runs"

// runHistoryStore is the program that a history starts, and kills. It writes what is in the file, and then an answer to
// each change that it reads.
func runHistoryStore(file string) error {
	type answer struct {
		State   ledger.StoreState
		Records []ledger.Record
		Error   string
	}
	say := json.NewEncoder(os.Stdout)
	db, err := boltstore.Open(file, 0o600, &bolt.Options{Timeout: 20 * time.Second, NoSync: true}) // what a killed process has written is there
	if err != nil {
		return err
	}
	store, err := boltstore.New(db, "history")
	if err != nil {
		return err
	}
	var found answer
	found.State, err = store.Load(func(r ledger.Record) { found.Records = append(found.Records, r) },
		func(id uint64, _ []byte, err error) { found.Error += fmt.Sprintf("record %d: %v; ", id, err) })
	if err != nil {
		return err
	}
	if err := noteRun(found.State.LastID); err != nil {
		return err
	}
	if err := say.Encode(found); err != nil {
		return err
	}
	for changes := json.NewDecoder(os.Stdin); ; {
		var c ledger.Change
		if err := changes.Decode(&c); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var done answer
		if err := store.Apply(c); err != nil {
			done.Error = err.Error()
		}
		if err := say.Encode(done); err != nil {
			return err
		}
	}
}

func noteRun(last uint64) error {
	f, err := os.OpenFile(filepath.Join(os.Getenv(dirEnv), runsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%d\n", last)
	return err
}
