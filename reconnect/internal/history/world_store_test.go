package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/redial-go/redial/reconnect/ledger"
)

// storeProgram names the variable of the environment that has the path of a program, which keeps the messages of a ledger in a file.
// The argument of the program is the file. The program writes what is in the file as an answer, and then an answer to each
// ledger.Change that it reads. The module reconnect/ledger/boltstore has such a program, and a test that runs histories with it.
const storeProgram = "REDIAL_HISTORY_STORE"

// program is a process with a ledger.Store.
type program struct {
	path, file string
	command    *exec.Cmd // nil: it does not run
	changes    io.WriteCloser
	answers    *json.Decoder
}

// answer is what the program writes. Only the first answer has a state and records.
type answer struct {
	State   ledger.StoreState
	Records []ledger.Record
	Error   string
}

// newProgram returns the program that the environment names, with an empty file. It returns nil if there is none.
func newProgram() *program {
	path := os.Getenv(storeProgram)
	if path == "" {
		return nil
	}
	file, err := os.CreateTemp("", "history-*.db")
	if err != nil {
		panic(err)
	}
	file.Close()
	return &program{path: path, file: file.Name()}
}

// start starts the program, and returns what is in its file.
func (p *program) start() (answer, error) {
	p.command = exec.Command(p.path, p.file)
	p.command.Stderr = os.Stderr
	changes, err := p.command.StdinPipe()
	if err != nil {
		return answer{}, err
	}
	answers, err := p.command.StdoutPipe()
	if err != nil {
		return answer{}, err
	}
	p.changes, p.answers = changes, json.NewDecoder(answers)
	if err := p.command.Start(); err != nil {
		return answer{}, err
	}
	return p.read()
}

func (p *program) read() (a answer, err error) {
	if err = p.answers.Decode(&a); err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// apply lets the program store a change.
func (p *program) apply(c ledger.Change) error {
	if err := json.NewEncoder(p.changes).Encode(c); err != nil {
		return err
	}
	_, err := p.read()
	return err
}

// kill kills the process, if it runs.
func (p *program) kill() {
	if p.command == nil {
		return
	}
	p.command.Process.Kill()
	p.command.Wait()
	p.command = nil
}

// clone kills the process. It returns the program with a copy of the file that the process has left.
func (p *program) clone() *program {
	p.kill()
	data, err := os.ReadFile(p.file)
	if err == nil {
		err = os.WriteFile(p.file+".crash", data, 0o600)
	}
	if err != nil {
		panic(err)
	}
	return &program{path: p.path, file: p.file + ".crash"}
}

// remove kills the process, and removes its file.
func (p *program) remove() {
	p.kill()
	os.Remove(p.file)
}

// differs says in what the file differs from a disk, or "".
func (a answer) differs(d *disk) string {
	if a.State != d.state || len(a.Records) != len(d.records) {
		return fmt.Sprintf("%+v with %d records, and %+v with %d were stored", a.State, len(a.Records), d.state, len(d.records))
	}
	for _, r := range a.Records {
		if want := d.records[r.ID]; r.Seq != want.Seq || string(r.Data) != string(want.Data) || !r.Added.Equal(want.Added) {
			return fmt.Sprintf("%+v, and %+v was stored", r, want)
		}
	}
	return ""
}
