// Command sign writes the provenance of a release's files, and signs files, in the formats of
// in-toto, SLSA and sigstore, so that cosign and all sigstore libraries can verify them.
//
//	sign -version 1.2.3 -commit 44014f56… -provenance dist/provenance.json dist/*.tar.gz
//	SIGN_KEY=cosign.key COSIGN_PASSWORD=… sign dist/provenance.json dist/*.tar.gz
//
// The provenance depends only on the files: it contains no time and no property of the machine.
// A signature is different each time, because ECDSA uses a random number.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	var o origin
	flag.StringVar(&o.version, "version", "dev", "version of the release")
	flag.StringVar(&o.commit, "commit", "", "commit that it was built from")
	flag.StringVar(&o.compiler, "go", "", "version of Go that built it")
	flag.StringVar(&o.builder, "builder", "https://github.com/spanstatsd/spanstatsd/Makefile#dist",
		"builder of the files")
	out := flag.String("provenance", "", "write the provenance of the files there, instead of signing them")
	flag.Parse()
	if err := run(o, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sign:", err)
		os.Exit(1)
	}
}

func run(o origin, out string, files []string) error {
	if out != "" {
		statement, err := o.statement(files)
		if err != nil {
			return err
		}
		return write(out, statement)
	}
	key, err := readKey(os.Getenv("SIGN_KEY"), []byte(os.Getenv("COSIGN_PASSWORD")))
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read file to sign: %w", err)
		}
		bundle, err := key.sign(content)
		if err != nil {
			return fmt.Errorf("sign %s: %w", file, err)
		}
		if err := write(file+".sigstore.json", bundle); err != nil {
			return err
		}
	}
	return nil
}

func write(file string, content []byte) error {
	if err := os.WriteFile(file, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
