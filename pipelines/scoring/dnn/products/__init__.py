"""Ways to multiply a layer's weights by the frames of a block, as `dnn.product` names them.

A product owns the weights of one layer or head in the form that its kernel wants them. What lies around it (ReLU,
which layers there are, stages) belongs to `scoring.dnn.dense`. To add one: a `Product`, its name here and in the
configuration, a test.
"""

from typing import Final

from pipelines.scoring.dnn.products.base import Product
from pipelines.scoring.dnn.products.plain import Blas, Scalar
from pipelines.scoring.dnn.products.simd import Simd
from pipelines.scoring.dnn.products.sparse import Blocks, Csr

PRODUCTS: Final[dict[str, type[Product]]] = {"blas": Blas, "blocks": Blocks, "csr": Csr, "scalar": Scalar, "simd": Simd}
