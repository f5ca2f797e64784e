"""The graph of a look-ahead folder (Kaldi's mkgraph_lookahead.sh, Vosk): HCLr.fst and Gr.fst, composed here.

`folder` is what others call; `files` and `ngram` read the two files, `compose` puts them together.
"""
