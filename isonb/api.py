"""Every public name but those of the audit, grouped as the pages of the reference are. All of it needs torch alone."""

# isort: skip_file
# Measures
from isonb.measures.cosine import cls_uniformity as cls_uniformity
from isonb.measures.cosine import cosine_contributions as cosine_contributions
from isonb.measures.cosine import cosine_penalty as cosine_penalty
from isonb.measures.cosine import mean_cosine as mean_cosine
from isonb.measures.cosine import token_uniformity as token_uniformity
from isonb.measures.isoscore import isoscore as isoscore
from isonb.measures.isoscore import isoscore_from_cov as isoscore_from_cov
from isonb.measures.isoscore import isoscore_star as isoscore_star
from isonb.measures.isoscore import participation_ratio as participation_ratio
from isonb.measures.isoscore import shrinkage_intensity as shrinkage_intensity
from isonb.measures.local import knn_queries as knn_queries
from isonb.measures.local import local_dimension as local_dimension
from isonb.measures.neighbors import id_score as id_score
from isonb.measures.neighbors import knn as knn
from isonb.measures.neighbors import lsds as lsds
from isonb.measures.neighbors import mle_dimension as mle_dimension
from isonb.measures.neighbors import two_nn as two_nn
from isonb.measures.pairs import alignment as alignment
from isonb.measures.pairs import cka as cka
from isonb.measures.pairs import lidar as lidar
from isonb.measures.pairs import nc1 as nc1
from isonb.measures.partition import partition_score as partition_score
from isonb.measures.rank import alpha_req as alpha_req
from isonb.measures.rank import effective_rank as effective_rank
from isonb.measures.spectrum import anisotropy as anisotropy
from isonb.measures.spectrum import explained_variance as explained_variance
from isonb.measures.spectrum import singular_values as singular_values
from isonb.measures.spectrum import spectral_cdf as spectral_cdf
from isonb.measures.spectrum import spectral_median as spectral_median
from isonb.measures.spectrum import spectral_skewness as spectral_skewness
from isonb.measures.spectrum import varex_score as varex_score
from isonb.measures.uniformity import rbf_uniformity as rbf_uniformity

# Barcodes
from isonb.barcodes.diagrams import from_diagrams as from_diagrams
from isonb.barcodes.diagrams import to_diagrams as to_diagrams
from isonb.barcodes.entropy import persistent_entropy as persistent_entropy
from isonb.barcodes.entropy import prominent_bars as prominent_bars
from isonb.barcodes.rips import Persistence as Persistence
from isonb.barcodes.rips import h0_barcode as h0_barcode
from isonb.barcodes.rips import rips_barcode as rips_barcode

# Losses
from isonb.losses.cosreg import CosRegLoss as CosRegLoss
from isonb.losses.cosreg import GaoCosineLoss as GaoCosineLoss
from isonb.losses.gor import GORLoss as GORLoss
from isonb.losses.isoscore import IsoScoreLoss as IsoScoreLoss
from isonb.losses.istar import IStarLoss as IStarLoss
from isonb.losses.istar import ShrinkageCovariance as ShrinkageCovariance
from isonb.losses.joint import JointLoss as JointLoss
from isonb.losses.persistent_entropy import PersistentEntropyLoss as PersistentEntropyLoss
from isonb.losses.sigreg import SIGRegLoss as SIGRegLoss
from isonb.losses.spectrum import SpectrumControlLoss as SpectrumControlLoss

# Layers
from isonb.layers.isobn import IsoBN as IsoBN
from isonb.layers.isotropy_layer import IsotropyLayer as IsotropyLayer
from isonb.layers.soft_decay import SoftDecay as SoftDecay
from isonb.layers.soft_decay import negative_count as negative_count
from isonb.layers.soft_decay import soft_decay as soft_decay

# Transforms
from isonb.transforms.base import Transform as Transform
from isonb.transforms.base import load_transform as load_transform
from isonb.transforms.clusters import ClusterRemoval as ClusterRemoval
from isonb.transforms.flow import GlowFlow as GlowFlow
from isonb.transforms.flow import fit_flow as fit_flow
from isonb.transforms.mean_direction import MeanDirection as MeanDirection
from isonb.transforms.sbert_wk import sbert_wk as sbert_wk
from isonb.transforms.graded import DimensionScale as DimensionScale
from isonb.transforms.graded import MeanTranslation as MeanTranslation
from isonb.transforms.graded import PartialWhitening as PartialWhitening
from isonb.transforms.graded import SingularDecay as SingularDecay
from isonb.transforms.graded import Standardize as Standardize
from isonb.transforms.whitening import AllButTheTop as AllButTheTop
from isonb.transforms.whitening import SoftZCA as SoftZCA
from isonb.transforms.whitening import Whitening as Whitening
from isonb.transforms.whitening import ZeroMean as ZeroMean

# Points and statistics
from isonb.numerics.rows import centered as centered
from isonb.points import cls_pool as cls_pool
from isonb.points import label_groups as label_groups
from isonb.points import layer_average as layer_average
from isonb.points import mean_pool as mean_pool
from isonb.points import points_from_hidden_states as points_from_hidden_states
from isonb.points import token_cloud as token_cloud
from isonb.streaming.moments import Moments as Moments

# What may come in, and the errors and warnings
from isonb import checks as checks
from isonb.checks import strict as strict
from isonb.errors import CloudWarning as CloudWarning
from isonb.errors import DegenerateError as DegenerateError
from isonb.errors import DependencyError as DependencyError
from isonb.errors import DtypeError as DtypeError
from isonb.errors import FitWarning as FitWarning
from isonb.errors import InputError as InputError
from isonb.errors import IsotropyWarning as IsotropyWarning
from isonb.errors import NotFittedError as NotFittedError
from isonb.errors import OptionError as OptionError
from isonb.errors import PrecisionWarning as PrecisionWarning
from isonb.errors import ShapeError as ShapeError
