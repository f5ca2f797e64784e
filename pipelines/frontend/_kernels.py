"""Compiled inner loops of the front end: plain functions over typed arrays.

Sums run in a fixed order inside one frame and carry state from frame to frame explicitly, so the
result does not depend on how an utterance is cut into calls.
"""

import math

import numba
import numpy as np

from pipelines.frontend.dynamic import DIFFERENCE, SECOND, VALUE

LOG_FLOOR = 1e-4  # added to each mel energy before the log (pocketsphinx fe_sigproc.c)

# Noise removal: minima tracking after Doblinger (1995), temporal masking and weight smoothing after
# Kim & Stern's PNCC (2012); values of pocketsphinx fe_noise.c.
POWER_MEMORY = 0.7  # smoothing of the channel power over time
RISE_MEMORY = 0.995  # a noise floor follows a louder channel slowly …
FALL_MEMORY = 0.5  # … and a quieter one fast
MASK_DECAY = 0.85  # decay per frame of the peak that masks what follows it
MASK_LEVEL = 0.2  # level, relative to that peak, of what is masked
MAX_GAIN = 20.0  # a channel is never changed by more than this factor
SMOOTHED_CHANNELS = 4  # gains are averaged over this many neighbours on each side

POWER, NOISE, FLOOR, PEAK = range(4)  # rows of the noise state


@numba.njit(cache=True, nogil=True)
def remove_noise(mel, state, gain, started):  # type: ignore[no-untyped-def]
    """Scale the mel energies of one frame in place by the smoothed gain that removes its noise.

    mel f64[n]; state f64[4, n], rows POWER…PEAK, initialised when `started` is false; gain f64[n] is workspace.
    """
    n = mel.shape[0]
    for i in range(n):
        if not started:
            state[POWER, i] = mel[i]
            state[NOISE, i] = mel[i] / MAX_GAIN
            state[FLOOR, i] = mel[i] / MAX_GAIN
            state[PEAK, i] = 0.0
        power = POWER_MEMORY * state[POWER, i] + (1 - POWER_MEMORY) * mel[i]
        state[POWER, i] = power
        noise = state[NOISE, i]
        memory = RISE_MEMORY if power >= noise else FALL_MEMORY
        noise = memory * noise + (1 - memory) * power
        state[NOISE, i] = noise
        signal = max(power - noise, 1.0)
        floor = state[FLOOR, i]
        memory = RISE_MEMORY if signal >= floor else FALL_MEMORY
        floor = memory * floor + (1 - memory) * signal
        state[FLOOR, i] = floor
        peak = MASK_DECAY * state[PEAK, i]
        state[PEAK, i] = max(signal, peak)
        if signal < MASK_DECAY * peak:
            signal = peak * MASK_LEVEL
        signal = max(signal, floor)
        ratio = signal / power if signal < MAX_GAIN * power else MAX_GAIN
        gain[i] = max(ratio, 1 / MAX_GAIN)
    for i in range(n):
        first = max(i - SMOOTHED_CHANNELS, 0)
        last = min(i + SMOOTHED_CHANNELS, n - 1)
        total = 0.0
        for j in range(first, last + 1):
            total += gain[j]
        mel[i] *= total / (last - first + 1)


@numba.njit(cache=True, nogil=True)
def cepstra(spectrum, filters, transform, denoise, state, started, out, sums):  # type: ignore[no-untyped-def]
    """Turn the spectra of consecutive frames into liftered cepstra.

    spectrum c128[frames, nfft/2+1]; filters (starts, offsets, weights): filter k covers the bins from
    starts[k] with weights[offsets[k]:offsets[k+1]]; transform f64[ncep, nfilt] is the scaled and liftered DCT;
    state f64[4, nfilt] of the noise removal, valid if `started`; out f32[frames, ncep].
    sums f64[ncep+1] gathers the cepstra of the frames that count for the mean, and their number.
    """
    starts, offsets, weights = filters
    n_filters = starts.shape[0]
    n_cepstra = transform.shape[0]
    mel = np.empty(n_filters)
    gain = np.empty(n_filters)
    power = np.empty(spectrum.shape[1])
    for t in range(spectrum.shape[0]):
        for b in range(spectrum.shape[1]):
            value = spectrum[t, b]
            power[b] = value.real * value.real + value.imag * value.imag
        for k in range(n_filters):
            energy = 0.0
            bin_of_weight = starts[k] - offsets[k]
            for w in range(offsets[k], offsets[k + 1]):
                energy += power[bin_of_weight + w] * weights[w]
            mel[k] = energy
        if denoise:
            remove_noise(mel, state, gain, started)
            started = True
        for k in range(n_filters):
            mel[k] = math.log(mel[k] + LOG_FLOOR)
        for i in range(n_cepstra):
            value = 0.0
            for k in range(n_filters):
                value += mel[k] * transform[i, k]
            out[t, i] = value
        # pocketsphinx leaves frames without energy out of the cepstral mean.
        if out[t, 0] >= 0:
            for i in range(n_cepstra):
                sums[i] += out[t, i]
            sums[n_cepstra] += 1.0


@numba.njit(cache=True, nogil=True)
def normalise(cepstra, mean, scale, columns, matrix, first, last, out):  # type: ignore[no-untyped-def]
    """The features of the frames first…last-1: cepstra less their mean, times `scale`, and differences of these.

    cepstra f32[frames, n] of the whole utterance; mean, scale f32[n]; columns i64[m, 3] rows (kind, frames, cepstrum);
    matrix f32[outputs, m] is applied to the columns, or is empty: they are the outputs. out f32[frames, outputs].
    Beyond both ends the outermost frame is repeated.
    """
    end = cepstra.shape[0] - 1
    m = columns.shape[0]
    before_matrix = np.empty(m, np.float32)
    for t in range(first, last):
        row = out[t] if matrix.shape[0] == 0 else before_matrix
        for j in range(m):
            kind, over, i = columns[j, 0], columns[j, 1], columns[j, 2]
            if kind == VALUE:
                row[j] = (cepstra[min(max(t + over, 0), end), i] - mean[i]) * scale[i]
            elif kind == DIFFERENCE:
                later, earlier = min(t + over, end), max(t - over, 0)
                row[j] = (cepstra[later, i] - cepstra[earlier, i]) * scale[i]
            elif kind == SECOND:
                ahead = cepstra[min(t + over + 1, end), i] - cepstra[max(t - over + 1, 0), i]
                behind = cepstra[min(t + over - 1, end), i] - cepstra[max(t - over - 1, 0), i]
                row[j] = (ahead - behind) * scale[i]
            else:
                row[j] = 0.0
        for k in range(matrix.shape[0]):
            total = np.float32(0.0)
            for j in range(m):
                total += row[j] * matrix[k, j]
            out[t, k] = total
